/** Asks the model about a conversation that is made to fit: beforehand, once it is refused, or by compacting it first. */
import type { Delta } from "../delta.ts";
import type { Caller } from "../gateway.ts";
import type { Item } from "../item.ts";
import type { Place } from "../place/place.ts";
import type { About, Remark, Tell } from "../ports.ts";
import type { Ask, RoutedTurn, Truncation, Turn } from "../turn.ts";
import { summarise } from "./compact.ts";
import { compactFirst, limitOf, withoutLimit } from "./compact-first.ts";
import { fitContext, type FitParts, truncationOf } from "./fit.ts";
import { createShortener, oursToShorten } from "./shorten.ts";

export interface Asker {
  /** Throws if the conversation cannot be made to fit. */
  prepare(ask: Ask<Item>, caller: Caller, place: Place, conversation: readonly Item[]): Promise<Asking>;
  /** What was learnt of models may have changed. */
  forget(): void;
}

interface Asking {
  /** What the model is shown, unless it turns out to be too long. */
  readonly items: readonly Item[];
  readonly truncation: Truncation;
  /** What the adapter says; what becomes known before its first word is added to `about`. */
  stream(about: GrowingAbout): AsyncIterable<readonly Delta[]>;
}

/** What is known of a running turn. */
export interface GrowingAbout extends About {
  contextItems: number;
  omittedItems: number;
  adapter?: string | undefined;
  upstreamModel?: string | undefined;
  readonly remarks: Remark[];
}

export function createAsker(parts: FitParts): Asker {
  const { adapter } = parts;
  const shortener = createShortener(parts);

  return {
    async prepare(ask, { turnId: id, signal, trace }, place, conversation) {
      const { model, settings, itemsParam } = ask;
      const truncation = truncationOf(ask, place.by);
      const limit = limitOf(parts, ask);
      const isWhole = ask.compacts === true || limit !== undefined;
      const items = isWhole ? conversation : await fitContext(parts, ask, conversation, truncation);
      const shortened = oursToShorten(ask, place, id);
      // Nobody waits for a background answer as a whole, and a stream may take longer.
      const streams = ask.stream || ask.background === true;
      const turn: Turn = { id, model, items, settings, stream: streams, trace };

      function stream(about: GrowingAbout) {
        const tell: Tell = (remark) => {
          if (remark.type === "asked") [about.adapter, about.upstreamModel] = [remark.adapter, remark.model];
          else about.remarks.push(remark);
        };
        const relay = (asked: RoutedTurn) => adapter.stream(asked, signal, tell);
        if (ask.compacts === true) return summarise(parts, turn, itemsParam, relay);
        const answer = (asked: Turn) => {
          if (truncation === "disabled") return relay(asked);
          const shortening = shortener.begin(asked, shortened, ({ length }) => {
            about.omittedItems += about.contextItems - length;
            about.contextItems = length;
          });
          return relay({ ...asked, shortening });
        };
        if (limit === undefined) return answer(turn);
        const own = { ...turn, settings: withoutLimit(settings, ask) };
        return compactFirst(parts, own, limit, itemsParam, relay, async function* (shown) {
          const fitted = await fitContext(parts, ask, shown, truncation);
          [about.contextItems, about.omittedItems] = [fitted.length, shown.length - fitted.length];
          yield* answer({ ...own, items: fitted });
        });
      }

      return { items, truncation, stream };
    },
    forget: () => shortener.forget(),
  };
}
