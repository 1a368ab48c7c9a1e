/** The lines of an archive: what they are called and hold. The first has the store's secrets, the last says that nothing is missing. */
import type { Item } from "../core/item.ts";
import type { Kind, ReadTurn } from "./rows.ts";

/** Readers of a later version read earlier ones. The former engine wrote version 1. */
export const version = 2;

export type Line = HeadLine | SessionLine | TurnLine | { readonly type: "end" };

/** Without the keys no hint is recognised again, and nothing opens that clients carry sealed. The store's own come first. */
export interface HeadLine {
  readonly type: "portico";
  readonly version: number;
  readonly hintKeys: readonly string[];
  readonly sealKeys: readonly string[];
}

/** Its turns follow it, those before others that hang below them. */
export interface SessionLine {
  readonly type: "session";
  readonly id: string;
  readonly owner: string;
  readonly kind: Kind;
  readonly shows: boolean;
  readonly tip?: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly createdAt: string;
  readonly usedAt: string;
}

export interface TurnLine {
  readonly type: "turn";
  readonly id: string;
  readonly owner: string;
  readonly session: string;
  readonly parent?: string | undefined;
  readonly depth: number;
  readonly remembers: boolean;
  readonly question?: string | undefined;
  readonly digest?: string | undefined;
  readonly createdAt: string;
  readonly model: string;
  /** Where an item was deleted a null stands. */
  readonly input: readonly (Item | null)[];
  readonly answer: readonly (Item | null)[];
  /** Absent: it was deleted, and holds the tree together. */
  readonly told?: object | undefined;
  readonly echo?: string | undefined;
}

/** A turn as the tables have it, with its place and its owner. */
export interface ArchivedTurn extends ReadTurn {
  readonly owner: string;
  readonly parent: string | null;
  readonly depth: number;
  readonly question: string | null;
  readonly digest: string | null;
  readonly remembers: number;
}
