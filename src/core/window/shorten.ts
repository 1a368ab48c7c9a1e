/** Asks again with less of the conversation if the model finds it too long: few servers say beforehand what fits. */
import { GatewayError } from "../errors.ts";
import type { Item } from "../item.ts";
import { makeOnce } from "../lazy.ts";
import { rootOf } from "../place/path.ts";
import { type Place, showsPath } from "../place/place.ts";
import type { Ask, Settings, Shortening, Turn } from "../turn.ts";
import { fixedTexts, type FitParts, reserveOf, truncationOf } from "./fit.ts";
import { type CountText, countItems, surelyFits } from "./tokens.ts";
import { fitWindow } from "./window.ts";

/**
 * The conversation that a turn is part of, by its session or its first turn; undefined: it is not ours to shorten. What a
 * caller has shown itself, it can shorten itself; what we remember must not make its request fail.
 */
export function oursToShorten(ask: Pick<Ask<Item>, "truncation">, place: Place, turnId: string): string | undefined {
  const mayShorten = truncationOf(ask, place.by) === "auto" && (ask.truncation === "auto" || !showsPath(place));
  return mayShorten ? (place.move?.id ?? rootOf(place.path)?.id ?? turnId) : undefined;
}

export interface Shortener {
  /**
   * For one turn; `onAsked` gets what an adapter is asked. What is learnt is remembered for the conversation; if that is
   * not ours to shorten, refusals stand.
   */
  begin(turn: Turn, conversation: string | undefined, onAsked: (items: readonly Item[]) => void): Shortening;
  /** A model may have been replaced by one that takes more. */
  forget(): void;
}

/**
 * An adapter that finds a conversation too long is asked with as much as its server says that the model takes, or with
 * half of what can be left out, and half of that; in the end only with what it needs to understand the newest message.
 */
export function createShortener({ tokenCounter }: Pick<FitParts, "tokenCounter">): Shortener {
  /**
   * How many tokens an adapter found too long. Not of its model alone: tokens are estimates, and what one caller sends
   * must not shorten what others have said.
   */
  const windows = new Map<string, number>();

  return {
    begin({ items: all, settings, model }, conversation, onAsked) {
      const readCount = createSteadyCounter(tokenCounter);
      const keyOf = (adapter: string) => JSON.stringify([conversation, adapter, model]);
      /** By the adapter that is asked now. */
      let refusals = 0;
      const reserveIn = (tokens: number) => reserveOf(settings, tokens, "auto");

      async function fit(tokens: number, reserve = reserveIn(tokens)) {
        return fitWindow(all, fixedTexts(settings), { tokens, reserve }, await readCount());
      }

      /** What the newest message needs; undefined: that is all there is. */
      async function findLeast(items: readonly Item[]) {
        const tokens = await countTokens(items);
        // Less than there is, and all of it reserved, leaves only what must stay.
        return fitWindow(items, fixedTexts(settings), { tokens: tokens - 1, reserve: tokens }, await readCount());
      }

      async function countTokens(items: readonly Item[]): Promise<number> {
        return countItems(items, fixedTexts(settings), await readCount());
      }

      return {
        async itemsFor(adapter, window = Infinity) {
          const learnt = windows.size === 0 ? undefined : windows.get(keyOf(adapter));
          const tokens = Math.min(window, learnt ?? Infinity);
          const mayExceed = tokens < Infinity && !surelyFits(all, fixedTexts(settings), tokens - reserveIn(tokens));
          // Tokens are estimates, so a newest message that is longer may be taken all the same, by itself.
          const items = mayExceed ? ((await fit(tokens)) ?? (await findLeast(all)) ?? all) : all;
          refusals = 0;
          onAsked(items);
          return items;
        },
        async lessThan(items, adapter, refusal) {
          if (conversation === undefined || !isTooLong(refusal)) return undefined;
          const room = roomTold(refusal, settings);
          // The answer alone is to be too long.
          if (room <= 0) return undefined;
          const refused = await countTokens(items);
          const least = await findLeast(items);
          // If not even that is accepted, the conversation is not the cause.
          if (least === undefined) {
            windows.delete(keyOf(adapter));
            return undefined;
          }
          if (windows.size >= maxWindows) windows.clear();
          const { contextWindow: told } = refusal;
          // If our count agrees with what the server says, that holds: a shorter answer may leave more room next time.
          windows.set(keyOf(adapter), told !== undefined && room < refused ? told.tokens : refused);
          const needed = await countTokens(least);
          const share = ++refusals > maxHalvings ? 0 : Math.floor((refused - needed) / 2);
          const less = (await (room < refused ? fit(room, 0) : fit(needed + share))) ?? least;
          onAsked(less);
          return less;
        },
      };
    },
    forget: () => windows.clear(),
  };
}

const maxWindows = 10_000;
/** Then all goes that can be left out: a caller should not wait long for a refusal. */
const maxHalvings = 4;

/** Whether a model found a conversation too long. */
export function isTooLong(thrown: unknown): thrown is GatewayError {
  return thrown instanceof GatewayError && thrown.wireCode === "context_length_exceeded";
}

/** How many tokens of a conversation there is room for, by the word of a server that refused more; else endless. */
export function roomTold({ contextWindow }: GatewayError, settings: Settings): number {
  const { tokens = Infinity, answer } = contextWindow ?? {};
  return tokens - (answer ?? reserveOf(settings, tokens, "auto"));
}

/** Counts a text always alike. Otherwise what is shorter might have more tokens, and be asked without end. */
export function createSteadyCounter(tokenCounter: FitParts["tokenCounter"]): () => Promise<CountText> {
  return makeOnce(async () => remember(await tokenCounter()));
}

function remember(count: CountText): CountText {
  const counted = new Map<string, number>();
  return (text) => {
    const tokens = counted.get(text) ?? count(text);
    counted.set(text, tokens);
    return tokens;
  };
}
