/** Metrics of owners: the tokens of their turns, by adapter. */
import type { About } from "../../core/ports.ts";
import type { Usage } from "../../core/turn.ts";
import { type Family, toCounter } from "./family.ts";
import { addUsage, createTokenCount, type TokenCount } from "./tokens.ts";

export interface OwnerCounts {
  /** Counts a turn that has ended; `owner` is a token's name, so there are few. */
  used(owner: string, turn: UsedTurn): void;
  read(): readonly Family[];
}

interface UsedTurn {
  readonly about?: Pick<About, "adapter"> | undefined;
  readonly usage?: Usage | undefined;
}

export function createOwnerCounts(): OwnerCounts {
  const byOwner = new Map<string, Map<string, TokenCount>>();
  return {
    used(owner, { about, usage }) {
      if (usage === undefined) return;
      let byAdapter = byOwner.get(owner);
      if (byAdapter === undefined) byOwner.set(owner, (byAdapter = new Map()));
      const adapter = about?.adapter ?? "";
      let count = byAdapter.get(adapter);
      if (count === undefined) byAdapter.set(adapter, (count = createTokenCount()));
      addUsage(count, usage);
    },
    read: () => [
      toCounter(
        "portico_owner_tokens_total",
        "Tokens as reported by the adapter, for the turns of a token's name.",
        [...byOwner].flatMap(([owner, byAdapter]) =>
          [...byAdapter].flatMap(([adapter, count]) =>
            Object.entries(count).map(([kind, tokens]) => [{ owner, adapter, kind }, tokens] as const),
          ),
        ),
      ),
    ],
  };
}
