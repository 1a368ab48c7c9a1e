/** What only a connection remembers: its last response that is not stored, or the request it has prepared. */
import { isInstruction, type Item } from "../../core/item.ts";
import type { Ask } from "../../core/turn.ts";

export interface Memory {
  /** Whether the request continues what is remembered here. */
  knows(ask: Ask): boolean;
  /** That request, with what is remembered in front of it. */
  complete(ask: Ask): Ask;
  /** Remembers a completed request and its answer, under this key. */
  keep(key: string, exchange: Exchange): void;
  forget(): void;
}

interface Exchange {
  readonly ask: Ask;
  readonly answer: readonly Item[];
  /** Of what is new in both. */
  readonly bytes: number;
  /** It continues what was remembered. */
  readonly continues: boolean;
}

interface Remembered extends Pick<Ask, "previous" | "conversation" | "items"> {
  readonly id: string;
  readonly bytes: number;
}

/** What is longer is not remembered: a request that showed it all would be refused, too. */
export function createMemory(maxBytes: number): Memory {
  let last: Remembered | undefined;
  const knows = ({ previous }: Ask): boolean => previous !== undefined && previous === last?.id;

  return {
    knows,
    complete(ask) {
      if (last === undefined || !knows(ask)) return ask;
      const { previous, conversation, items } = last;
      return { ...ask, previous, conversation, items: [...items, ...ask.items] };
    },
    keep(key, { ask: { previous, conversation, items }, answer, bytes: added, continues }) {
      const bytes = added + (continues && last !== undefined ? last.bytes : 0);
      last = { id: `resp_${key}`, previous, conversation, items: [...items, ...answer], bytes };
      const at = answer.findLastIndex(({ type }) => type === "compaction");
      // It stands for all that was said before it.
      if (at >= 0)
        last = { ...last, previous: undefined, items: [...items.filter(isInstruction), ...answer.slice(at)] };
      if (bytes > maxBytes) last = undefined;
    },
    forget() {
      last = undefined;
    },
  };
}
