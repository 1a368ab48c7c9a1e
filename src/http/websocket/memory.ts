/** What only a connection remembers: its last response that is not stored, or the request it has prepared. */
import { isInstruction, type Item } from "../../core/item.ts";
import type { Ask } from "../../core/turn.ts";

export type Memory = ReturnType<typeof createMemory>;

interface Remembered extends Pick<Ask, "previous" | "conversation" | "items"> {
  readonly id: string;
  readonly bytes: number;
}

/** What is longer is not remembered: a request that showed it all would be refused, too. */
export function createMemory(maxBytes: number) {
  let last: Remembered | undefined;
  const knows = ({ previous }: Ask): boolean => previous !== undefined && previous === last?.id;

  return {
    /** Whether the request continues what is remembered here. */
    knows,
    /** That request, with what is remembered in front of it. */
    complete(ask: Ask): Ask {
      if (last === undefined || !knows(ask)) return ask;
      const { previous, conversation, items } = last;
      return { ...ask, previous, conversation, items: [...items, ...ask.items] };
    },
    /** Remembers a completed request and its answer, under this key. `bytes`: of what is new; `continues`: what was remembered. */
    keep(key: string, ask: Ask, answer: readonly Item[], newBytes: number, continues: boolean): void {
      const { previous, conversation, items } = ask;
      const id = `resp_${key}`;
      const bytes = newBytes + (continues && last !== undefined ? last.bytes : 0);
      const at = answer.findLastIndex(({ type }) => type === "compaction");
      if (bytes > maxBytes) last = undefined;
      // A compaction stands for all that was said before it.
      else if (at >= 0)
        last = { id, bytes, conversation, items: [...items.filter(isInstruction), ...answer.slice(at)] };
      else last = { id, bytes, previous, conversation, items: [...items, ...answer] };
    },
    forget(): void {
      last = undefined;
    },
  };
}
