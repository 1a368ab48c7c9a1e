/** What a connection alone remembers: its last response that is kept nowhere else, and the request that was made ready. */
import { talkOf } from "../../core/place/context.ts";
import { noPath, type Path, turnsOf } from "../../core/place/path.ts";
import type { Memory } from "../../core/place/place.ts";
import type { PathTurn } from "../../core/store.ts";
import type { Ask } from "../../core/turn.ts";
import { type Hold, toHeldBytes } from "../held.ts";

export interface ConnectionMemory extends Memory {
  /** Remembers a request that nothing was generated for, under the name by which a later one goes on from it. */
  prepare(turnId: string, ask: Ask): void;
  /** The request as the gateway can take it, with what only this connection knows of the time before in front of it. */
  complete(ask: Ask): Ask;
  /** Whether a request with this name of the response before it goes on from here. */
  knows(turnId: string): boolean;
  /** Lets go of everything. */
  forget(): void;
}

/** What is longer than `maxBytes` is not remembered: no request that showed it all would be taken either. `hold` counts it. */
export function createConnectionMemory(maxBytes: number, hold: Hold): ConnectionMemory {
  let path = noPath;
  let pathBytes = 0;
  let prepared: { readonly turnId: string; readonly ask: Ask } | undefined;

  function forget(): void {
    path = noPath;
    pathBytes = 0;
    prepared = undefined;
    hold.take(0);
  }

  function find(turnId: string): Path | undefined {
    return path.tip?.id === turnId ? path : undefined;
  }

  function completePrepared(ask: Ask): Ask {
    if (prepared === undefined || ask.previousId !== prepared.turnId) return ask;
    const { previousId, conversationId, items } = prepared.ask;
    return { ...ask, previousId, conversationId, items: [...items, ...ask.items] };
  }

  function complete(ask: Ask): Ask {
    const whole = completePrepared(ask);
    const before = whole.previousId === undefined ? undefined : find(whole.previousId);
    if (before === undefined || whole.keep === "no") return whole;
    // What is kept cannot follow what is not, so it begins with all that counts of what was said.
    return { ...whole, previousId: undefined, items: [...talkOf(before), ...whole.items] };
  }

  return {
    find,
    keep(grown) {
      const known = grown.tip?.parent === path.tip?.id ? path.length : 0;
      const added = turnsOf(grown).slice(known);
      pathBytes = (known === 0 ? 0 : pathBytes) + added.reduce((sum, turn) => sum + sizeOf(turn), 0);
      path = grown;
      prepared = undefined;
      // Its client sends all of it again when it is not remembered.
      if (pathBytes > maxBytes || !hold.take(pathBytes)) forget();
    },
    prepare(turnId, ask) {
      const whole = completePrepared(ask);
      const bytes = toHeldBytes(JSON.stringify(whole.items));
      hold.check(pathBytes + bytes);
      if (whole.previousId === undefined || find(whole.previousId) === undefined) forget();
      prepared = { turnId, ask: whole };
      if (pathBytes + bytes > maxBytes || !hold.take(pathBytes + bytes)) forget();
    },
    complete,
    knows: (turnId) => prepared?.turnId === turnId || find(turnId) !== undefined,
    forget,
  };
}

function sizeOf({ input, output }: PathTurn): number {
  return toHeldBytes(JSON.stringify([input, output]));
}
