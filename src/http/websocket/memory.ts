/** What only a connection remembers, for each lane: its last response that is not stored, and its prepared request. */
import { shapeOf, toPartBytes } from "../../core/json-shape.ts";
import { noPath, type Path, turnsOf } from "../../core/place/path.ts";
import type { Memory } from "../../core/place/place.ts";
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
  let pathSize = noSize;
  let prepared: { readonly turnId: string; readonly ask: Ask } | undefined;

  function forget(): void {
    path = noPath;
    pathSize = noSize;
    prepared = undefined;
    hold.take(0);
  }

  /** The client resends all of it if it is not remembered. */
  function takeOrForget({ textBytes, partBytes }: Size): void {
    if (textBytes > maxBytes || !hold.take(textBytes + partBytes)) forget();
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
      const sizes = added.map(({ input, output }) => sizeOf([input, output]));
      pathSize = sizes.reduce(addSizes, known === 0 ? noSize : pathSize);
      path = grown;
      prepared = undefined;
      takeOrForget(pathSize);
    },
    prepare(turnId, ask) {
      const whole = complete(ask);
      const size = sizeOf(whole.items);
      const { textBytes, partBytes } = addSizes(pathSize, size);
      hold.check(textBytes + partBytes);
      if (whole.previousId === undefined || find(whole.previousId) === undefined) forget();
      prepared = { turnId, ask: whole };
      takeOrForget(addSizes(pathSize, size));
    },
    complete,
    knows: (turnId) => prepared?.turnId === turnId || find(turnId) !== undefined,
    forget,
    release: hold.release,
  };
}

/** How much memory something takes: its text, and its parts beside that. */
interface Size {
  readonly textBytes: number;
  readonly partBytes: number;
}

const noSize: Size = { textBytes: 0, partBytes: 0 };

function addSizes(one: Size, other: Size): Size {
  return { textBytes: one.textBytes + other.textBytes, partBytes: one.partBytes + other.partBytes };
}

function sizeOf(items: unknown): Size {
  const partBytes = toPartBytes(shapeOf(items));
  return { textBytes: toHeldBytes(JSON.stringify(items)), partBytes: Math.max(0, partBytes - uncountedPartBytes) };
}

/** Every turn has some parts. */
const uncountedPartBytes = 1024;
