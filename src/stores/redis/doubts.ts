/** Turns of which the caller was told that they failed, but which may have been kept: the answer to their commit was lost, or replicas have them not. */
import type { Keeping } from "../../core/store.ts";

export interface Doubts {
  /** Takes it out, so that nothing of a failed turn reaches the next one; if that cannot be asked now it stays in doubt. */
  add(owner: string, turnId: string): void;
  /** The same for all that are in doubt. */
  settle(): void;
}

export function createDoubts(deleteTurn: Keeping["deleteTurn"]): Doubts {
  const owners = new Map<string, string>();

  async function withdraw(owner: string, turnId: string): Promise<void> {
    await deleteTurn(owner, turnId);
    owners.delete(turnId);
  }

  return {
    add(owner, turnId) {
      owners.set(turnId, owner);
      withdraw(owner, turnId).catch(() => {});
    },
    settle() {
      for (const [turnId, owner] of owners) withdraw(owner, turnId).catch(() => {});
    },
  };
}
