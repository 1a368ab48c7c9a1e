/** Asks again with less of the conversation if the model finds it too long: few servers say beforehand what fits. */
import type { Delta } from "../delta.ts";
import { GatewayError } from "../errors.ts";
import type { Item } from "../item.ts";
import { type Place, showsPath } from "../place/place.ts";
import type { Ask, Turn } from "../turn.ts";
import { fixedTexts, type FitParts, reserveOf, truncationOf } from "./fit.ts";
import { countItems, fitWindow } from "./window.ts";

/** What a caller has shown itself, it can shorten itself; what we remember must not make its request fail. */
export function isOursToShorten(ask: Pick<Ask<Item>, "truncation">, place: Place): boolean {
  if (truncationOf(ask, place.by) === "disabled") return false;
  return ask.truncation === "auto" || !showsPath(place);
}

export interface Shortener {
  /**
   * Asks with half of what can be left out, and half of that, until the model begins to answer; in the end only with
   * what it needs to understand the newest message. `onShorter` gets what is asked instead. What is learnt is
   * remembered for the session, if there is one.
   */
  ask(
    turn: Turn,
    session: string | undefined,
    stream: (turn: Turn) => AsyncIterable<readonly Delta[]>,
    onShorter: (items: readonly Item[]) => void,
  ): AsyncIterable<readonly Delta[]>;
  /** How many tokens of a session its model found too long. */
  windowOf(session: string | undefined, model: string): number | undefined;
  /** A model may have been replaced by one that takes more. */
  forget(): void;
}

export function createShortener({ tokenCounter }: Pick<FitParts, "tokenCounter">): Shortener {
  // Not by model alone: tokens are estimates, and what one caller sends must not shorten what others have said.
  const windows = new Map<string, { readonly model: string; readonly tokens: number }>();

  function learn(session: string, model: string, tokens: number): void {
    if (windows.size >= maxSessions) windows.clear();
    windows.set(session, { model, tokens });
  }

  return {
    async *ask(turn, session, stream, onShorter) {
      let { items } = turn;
      let refused: number | undefined;
      let count: Count | undefined;
      for (;;) {
        let hasBegun = false;
        try {
          for await (const batch of stream({ ...turn, items })) {
            if (!hasBegun && refused !== undefined && session !== undefined) learn(session, turn.model, refused);
            hasBegun = true;
            yield batch;
          }
          return;
        } catch (thrown) {
          if (hasBegun || !isTooLong(thrown)) throw thrown;
          count ??= remember(await tokenCounter());
          const fixed = fixedTexts(turn.settings);
          refused = countItems(items, fixed, count);
          // Less than was refused, and all of it reserved, leaves only what must stay.
          const least = fitWindow(items, fixed, { tokens: refused - 1, reserve: refused }, count);
          if (least === undefined) throw thrown;
          const needed = countItems(least, fixed, count);
          const tokens = needed + Math.floor((refused - needed) / 2);
          const reserve = reserveOf(turn.settings, tokens, "auto");
          items = fitWindow(turn.items, fixed, { tokens, reserve }, count) ?? least;
          onShorter(items);
        }
      }
    },
    windowOf(session, model) {
      const learnt = session === undefined ? undefined : windows.get(session);
      return learnt?.model === model ? learnt.tokens : undefined;
    },
    forget: () => windows.clear(),
  };
}

const maxSessions = 10_000;

type Count = (text: string) => number;

/** An estimate may differ the next time; what is shorter must have fewer tokens, or it would be asked without end. */
function remember(count: Count): Count {
  const counted = new Map<string, number>();
  return (text) => {
    const tokens = counted.get(text) ?? count(text);
    counted.set(text, tokens);
    return tokens;
  };
}

function isTooLong(thrown: unknown): boolean {
  return thrown instanceof GatewayError && thrown.wireCode === "context_length_exceeded";
}
