/** What only a connection remembers, for each lane: its last response that is not stored, and its prepared request. */
import { noPath, type Path, turnsOf } from "../../core/place/path.ts";
import type { Memory } from "../../core/place/place.ts";
import type { PathTurn } from "../../core/store.ts";
import type { Ask } from "../../core/turn.ts";
import { type Hold, toHeldBytes } from "../held.ts";

export interface LaneMemories {
  /** For a request of this lane: it may continue what any lane remembers, and its own remembers it. */
  of(lane: string | undefined, previousId: string | undefined): LaneMemory;
  /** Stops counting what they remember. */
  release(): void;
}

export interface LaneMemory extends Memory {
  /** Remembers a request for which nothing was generated, under the id by which a later one continues it. */
  prepare(turnId: string, ask: Ask): void;
  /** The request with the one in front that was prepared for it. */
  complete(ask: Ask): Ask;
  /** Whether a request with this previous response continues from here. */
  knows(turnId: string): boolean;
  /** Forgets everything. */
  forget(): void;
  /** Stops counting what it remembers. */
  release(): void;
}

/** If there are more, the one that was silent for longest is forgotten. */
const maxLanes = 16;
/** Lanes with a longer name share the memory of requests without one. */
const maxNameLength = 256;

/**
 * What is longer than `maxBytes` in one lane is not remembered: a request that showed it all would be refused too.
 * `openHold` returns what counts a lane's memory.
 */
export function createLaneMemories(maxBytes: number, openHold: () => Hold): LaneMemories {
  /** The newest comes last. */
  const lanes = new Map<string | undefined, LaneMemory>();

  function renew(name: string | undefined): LaneMemory {
    const memory = lanes.get(name) ?? createLaneMemory(maxBytes, openHold());
    lanes.delete(name);
    lanes.set(name, memory);
    return memory;
  }

  function forgetOldest(): void {
    const [oldest] = lanes;
    if (oldest === undefined) return;
    const [name, memory] = oldest;
    memory.release();
    lanes.delete(name);
  }

  return {
    of(lane, previousId) {
      const knowing = previousId === undefined ? undefined : [...lanes].find(([, memory]) => memory.knows(previousId));
      const before = knowing && renew(knowing[0]);
      const own = renew(lane !== undefined && lane.length <= maxNameLength ? lane : undefined);
      if (lanes.size > maxLanes) forgetOldest();
      return before === undefined ? own : { ...before, keep: own.keep };
    },
    release() {
      for (const memory of lanes.values()) memory.release();
    },
  };
}

function createLaneMemory(maxBytes: number, hold: Hold): LaneMemory {
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

  function complete(ask: Ask): Ask {
    if (prepared === undefined || ask.previousId !== prepared.turnId) return ask;
    const { previousId, conversationId, items } = prepared.ask;
    return { ...ask, previousId, conversationId, items: [...items, ...ask.items] };
  }

  return {
    find,
    keep(grown) {
      const known = grown.tip?.parent === path.tip?.id ? path.length : 0;
      const added = turnsOf(grown).slice(known);
      pathBytes = (known === 0 ? 0 : pathBytes) + added.reduce((sum, turn) => sum + sizeOf(turn), 0);
      path = grown;
      prepared = undefined;
      // The client resends all of it if it is not remembered.
      if (pathBytes > maxBytes || !hold.take(pathBytes)) forget();
    },
    prepare(turnId, ask) {
      const whole = complete(ask);
      const bytes = toHeldBytes(JSON.stringify(whole.items));
      hold.check(pathBytes + bytes);
      if (whole.previousId === undefined || find(whole.previousId) === undefined) forget();
      prepared = { turnId, ask: whole };
      if (pathBytes + bytes > maxBytes || !hold.take(pathBytes + bytes)) forget();
    },
    complete,
    knows: (turnId) => prepared?.turnId === turnId || find(turnId) !== undefined,
    forget,
    release: hold.release,
  };
}

function sizeOf({ input, output }: PathTurn): number {
  return toHeldBytes(JSON.stringify([input, output]));
}
