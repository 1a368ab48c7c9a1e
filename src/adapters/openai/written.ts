/** Conversations as they were last sent: what was sent before is not written again. */
import { randomUUID } from "node:crypto";
import type { Item } from "../../core/item.ts";
import { lookThrough, toPartBytes } from "../../core/json-shape.ts";
import { createKept } from "../../core/kept.ts";

export interface Written {
  /** A body, which has a list of the items behind its `front`. */
  write(items: readonly Item[], form: Form, toBody: (list: unknown) => unknown, front?: readonly unknown[]): Buffer;
  /** Forgets all of them. */
  clear(): void;
}

/** How items are written. */
export interface Form {
  /** Conversations in different forms have nothing in common. */
  readonly name: string;
  write(items: readonly Item[]): readonly unknown[];
  /** Whether what comes from this one on is written the same, whatever comes before. */
  isSeam(items: readonly Item[], index: number): boolean;
}

/** The items and their text, and about how many bytes both take. */
interface Conversation {
  readonly form: string;
  readonly items: readonly Item[];
  /** As it is sent: encoding takes three times as long as copying, and twenty times if not all is Latin-1. */
  readonly text: Buffer;
  readonly bytes: number;
}

const maxBytes = 16 * 1024 * 1024;
/** How many items may have been added since. */
const maxAdded = 64;

/** What is not continued for ten of these is forgotten; for two, if another needs the room. */
const periodMs = 60_000;

/**
 * Keeps them in about `maxBytes`. Shorter ones than `minLength` are written in less time than it takes to remember
 * them.
 */
export function createWritten(minLength = 16 * 1024): Written {
  /** By their last items. */
  const kept = createKept<Item, Conversation>({
    maxSize: () => maxBytes,
    later: (work) => setTimeout(work, periodMs).unref(),
  });

  /**
   * The model's last words in conversations that were written, since only those that come again are worth more; and
   * how many bytes these would have taken, as far as is known: to find that out costs more than to write them.
   */
  const seen = new WeakMap<Item, number>();

  function see(items: readonly Item[], form: Form, body: string): void {
    const before = items.slice(-maxAdded).findLast((item) => seen.has(item));
    let bytes = (before && seen.get(before)) ?? 0;
    if (before !== undefined && kept.hasRoom(Math.max(bytes, 2 * bytesOfText(body)))) bytes = keep(items, form).bytes;
    const last = items.findLast(isOfModel);
    if (last !== undefined) seen.set(last, bytes);
  }

  function find(items: readonly Item[], form: Form): Conversation | undefined {
    const least = Math.max(0, items.length - maxAdded);
    for (let end = items.length; end > least; end -= 1) {
      const last = items[end - 1];
      const found = last && kept.get(last);
      if (found?.items.length !== end || found.form !== form.name || !form.isSeam(items, end)) continue;
      if (startsWith(items, found.items)) return found;
    }
    return undefined;
  }

  /** Writes and keeps a conversation up to the model's last word: what follows may come as other objects next time. */
  function keep(items: readonly Item[], form: Form, before: Conversation = nothing): Conversation {
    const end = items.findLastIndex((item, at) => isOfModel(item) && form.isSeam(items, at + 1)) + 1;
    const added = items.slice(before.items.length, end);
    const addedText = toText(form.write(added));
    const text = addedText.length === 0 ? before.text : Buffer.concat(join(before.text, addedText));
    const bytes = before.bytes + addedText.length + bytesOf(added);
    const conversation = { form: form.name, items: items.slice(0, end), text, bytes };
    const [lastBefore, last] = [before.items.at(-1), items[end - 1]];
    if (lastBefore !== undefined) kept.delete(lastBefore);
    if (last !== undefined && text.length >= minLength) kept.set(last, conversation, bytes);
    return conversation;
  }

  return {
    write(items, form, toBody, front = []) {
      const before = find(items, form);
      if (before === undefined) {
        const body = JSON.stringify(toBody(front.concat(form.write(items))));
        if (body.length >= minLength) see(items, form, body);
        return Buffer.from(body);
      }
      const { items: said, text } = keep(items, form, before);
      const list = join(toText(front), text, toText(form.write(items.slice(said.length))));
      const [head, tail] = JSON.stringify(toBody(mark)).split(JSON.stringify(mark));
      return Buffer.concat([Buffer.from(`${head}[`), ...list, Buffer.from(`]${tail}`)]);
    },
    clear: kept.clear,
  };
}

const nothing: Conversation = { form: "", items: [], text: Buffer.alloc(0), bytes: 0 };

function isOfModel(item: Item): boolean {
  return item.type === "tool-call" || (item.type === "message" && item.role === "assistant");
}

/**
 * The items live as long as their text, and may have much that this wire does not show, of which a few characters can be
 * a whole object.
 */
function bytesOf(items: readonly Item[]): number {
  const json = JSON.stringify(items);
  const shape = lookThrough(json, endless);
  const members = shape.members - ownMembers * items.length;
  return bytesOfText(json) + toPartBytes({ ...shape, members });
}

/** At least so many members of an item have names that all items of its kind share, and take next to nothing. */
const ownMembers = 3;

/** At most: a text takes one byte per character, or two if any is not ASCII. */
function bytesOfText(text: string): number {
  return Buffer.byteLength(text) === text.length ? text.length : 2 * text.length;
}

const endless = { depth: Infinity, containers: Infinity, members: Infinity };

/** Stands for the list. Nobody else can know it, so it is nowhere else in a body. */
const mark = randomUUID();

/** The elements of a list, without its brackets. */
function toText(list: readonly unknown[]): Buffer {
  return Buffer.from(JSON.stringify(list).slice(1, -1));
}

const comma = Buffer.from(",");

/** The elements of several lists, to be put together as those of one. */
function join(...lists: readonly Buffer[]): readonly Buffer[] {
  return lists.filter(({ length }) => length > 0).flatMap((list, index) => (index === 0 ? [list] : [comma, list]));
}

function startsWith(items: readonly Item[], beginning: readonly Item[]): boolean {
  for (let index = 0; index < beginning.length; index += 1) {
    const [item, known] = [items[index], beginning[index]];
    if (item !== known && !isSameMessage(item, known)) return false;
  }
  return true;
}

/** Instructions are sent with each request. */
function isSameMessage(one: Item | undefined, other: Item | undefined): boolean {
  if (one?.type !== "message" || other?.type !== "message" || typeof one.content !== "string") return false;
  if (one.role !== other.role || one.content !== other.content || one.name !== other.name) return false;
  return one.extra === undefined && other.extra === undefined;
}
