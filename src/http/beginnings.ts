/** The beginnings of earlier bodies, up to the end of the last element of their lists, found by their bytes. */
import { type JsonShape, toPartBytes } from "../core/json-shape.ts";
import { createKept } from "../core/kept.ts";
import type { Ask } from "../core/turn.ts";

export interface Beginnings {
  /** Shorter bodies are not remembered: parsing them anew takes no longer. */
  readonly minBytes: number;
  find(sender: Sender, body: Buffer): Found | undefined;
  /** What it continues is forgotten. Of a conversation that nobody has resent yet only the name is kept. */
  keep(sender: Sender, beginning: Beginning, continued?: Found): void;
}

/** What a body seems to continue. */
interface Found {
  readonly name: string;
  /** What the body begins with, if it is known. */
  readonly beginning?: Beginning | undefined;
}

/** Whose body it is, and the list that clients resend in it. */
export interface Sender {
  readonly owner: string;
  readonly listName: string;
}

export interface Beginning {
  readonly bytes: Buffer;
  /** The text before the list's first element. */
  readonly head: string;
  readonly elements: readonly unknown[];
  /** What the elements became. */
  readonly items: Ask["items"];
  /** What is in the elements. */
  readonly shape: JsonShape;
  /** The memory that its text takes. */
  readonly textBytes: number;
}

/**
 * The bytes before the last full step of a beginning are its name: conversations that start alike differ there. A body
 * that is longer by a few steps finds it by them, without knowing where its elements end.
 */
const step = 4 * 1024;
const nameBytes = 64;
/** A body that is longer by more steps is taken as new. */
const maxSteps = 256;

/** What is not resent for ten of these is forgotten; for two, if another needs the room. */
const periodMs = 60_000;

/** Keeps them in about `maxBytes` of memory. */
export function createBeginnings(maxBytes: () => number, minBytes = 16 * 1024): Beginnings {
  /** Without a beginning, by the names of those that were seen once. */
  const kept = createKept<string, Omit<Found, "name">>({
    maxSize: maxBytes,
    later: (work) => setTimeout(work, periodMs).unref(),
  });
  return {
    minBytes,
    find(sender, body) {
      const last = Math.floor(body.length / step);
      for (let steps = last; steps > last - maxSteps && steps >= 0; steps -= 1) {
        const name = nameOf(sender, body, steps);
        const found = kept.get(name);
        if (found === undefined) continue;
        const { beginning } = found;
        return { name, beginning: beginning && startsWith(body, beginning.bytes) ? beginning : undefined };
      }
      return undefined;
    },
    keep(sender, beginning, continued) {
      const name = nameOf(sender, beginning.bytes);
      if (continued === undefined) kept.set(name, {}, sizeOfName);
      else {
        kept.delete(continued.name);
        kept.set(name, { beginning }, sizeOfName + sizeOf(beginning));
      }
    },
  };
}

function nameOf({ owner, listName }: Sender, bytes: Buffer, steps = Math.floor(bytes.length / step)): string {
  const end = steps * step;
  return `${end} ${bytes.toString("latin1", Math.max(0, end - nameBytes), end)} ${listName} ${owner}`;
}

function startsWith(body: Buffer, bytes: Buffer): boolean {
  return body.length > bytes.length && body.compare(bytes, 0, bytes.length, 0, bytes.length) === 0;
}

const sizeOfName = 256;

/** The whole body, since no part of its bytes can be freed, the values that they became, and the items of these. */
function sizeOf({ bytes, textBytes, shape }: Beginning): number {
  return bytes.buffer.byteLength + textBytes + 2 * toPartBytes(shape);
}
