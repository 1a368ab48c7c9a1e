/** Turns of which the caller was told that they failed, but which may have been kept: the answer to their commit was lost. */
import { shownSuffix } from "../../core/conversation/address.ts";
import type { Ground } from "./ground.ts";
import { toList, toTexts } from "./script.ts";
import { scripts } from "./scripts.ts";

export interface Doubts {
  add(owner: string, turnId: string): void;
  /** Takes them out, so that nothing of a failed turn reaches the next one; what cannot be asked now stays in doubt. */
  settle(): void;
}

export function createDoubts(ground: Ground): Doubts {
  const owners = new Map<string, string>();

  async function withdraw(owner: string, turnId: string): Promise<void> {
    const [changes, changed] = toList(await ground.write(scripts.deleteTurn, [owner, turnId, shownSuffix]));
    owners.delete(turnId);
    if (changes !== undefined) ground.noteChange(changes, toTexts(changed));
  }

  return {
    add: (owner, turnId) => void owners.set(turnId, owner),
    settle() {
      for (const [turnId, owner] of owners) withdraw(owner, turnId).catch(() => {});
    },
  };
}
