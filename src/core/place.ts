/**
 * The rule: where a turn hangs, and what the model sees of the past. The first row that fits decides.
 *
 *   the request                               hangs below                         the model sees
 *   names a turn or a conversation            that turn; the conversation's tip   the stored path, then the request's items
 *   shows a history that is known here        the deepest turn that it ends       exactly what it shows
 *   answers calls of a turn that got its      the turn that made the calls        the stored path, then what stands behind
 *     memory from us, or does not show                                              the model's last word
 *     the call that it answers
 *   shows any other history                   nothing: a new root                 exactly what it shows
 *   has only new items                        the tip; a new root where clients   the stored path, then the request's items
 *                                               are known to show their history,
 *                                               or for another program (below)
 *
 * Another program: agents ask for a title beside their first message, sometimes before it, under the same header, with
 * instructions of its own and without tools. So under a header a request is a new root if the tip is a root, both have
 * instructions and these differ, and exactly one of the two offers tools. A root with tools takes the tip from a root
 * without tools, even if that was stored meanwhile (`takesTip`); a root without tools never takes it from another program.
 */
import type { History } from "./history.ts";
import type { Item } from "./item.ts";

/** A stored turn, as far as the rule needs it. */
export interface Node {
  readonly turn: number;
  readonly digest: string;
  /** The gateway gave it its memory: it was not the caller who showed it. */
  readonly remembers: boolean;
  readonly hasFollowers: boolean;
  /** How many turns its path has. */
  readonly depth: number;
  /** Set on a tip that is a root: the program that made it. Turns of layout 1 have none. */
  readonly program?: Program | undefined;
}

/** Distinguishes the programs that share a session. */
export interface Program {
  /** A hash of its instructions; undefined: it gave none. */
  readonly instructions: string | undefined;
  readonly offersTools: boolean;
}

export function isOtherProgram(one: Program | undefined, other: Program | undefined): boolean {
  if (one?.instructions === undefined || other?.instructions === undefined) return false;
  return one.instructions !== other.instructions && one.offersTools !== other.offersTools;
}

/** Who made the calls that a request answers, with all that it said. */
export interface Maker {
  readonly node: Node;
  readonly answer: readonly Item[];
}

/** What the store knows of a request. */
export interface Found {
  readonly session: Session | undefined;
  readonly named: Node | undefined;
  /** A question of the session stands in the request with some answer behind it, be it not the one that was given. */
  readonly wasAsked: boolean;
  /** The deepest stored turn that ends what the request shows, and the first item behind it. */
  readonly match: { readonly node: Node; readonly behind: number } | undefined;
  /** By call id. */
  readonly makers: ReadonlyMap<string, Maker>;
}

export interface Session {
  readonly id: string;
  /** Nobody names it: it holds a turn that has no other. */
  readonly isHidden: boolean;
  /** Its clients are known to show their history. */
  readonly shows: boolean;
  readonly tip: Node | undefined;
}

export type Told = "new" | "continued" | "matched" | "forked" | "foreign" | "stateless";

export interface Place {
  readonly parent: Node | undefined;
  /** The model sees the stored path in front of the request's items. */
  readonly remembers: boolean;
  /** The request's items from here on are new: they are what is kept, and what follows a remembered path. */
  readonly from: number;
  /** Only a turn that continues a tip has to wait for the one before it. */
  readonly waits: boolean;
  /** The session's tip moves here, unless somebody else moved it meanwhile. */
  readonly leads: boolean;
  /** From now on the session's clients are known to show their history. */
  readonly learns: boolean;
  readonly told: Told;
}

/** What of a request decides beside what it shows. */
export interface Claim {
  readonly name: "turn" | "conversation" | "hint" | undefined;
  /** Its client is said to show its history, or known to by the kind of its hint. */
  readonly shows: boolean;
  /** A header names its session: programs may share it. */
  readonly isByHeader: boolean;
  program(): Program;
}

export function toPlace(claim: Claim, history: History, found: Found): Place {
  const { session, named, match, makers } = found;
  const tip = session?.tip;
  const shows = claim.shows || (session?.shows ?? false);
  switch (claim.name) {
    case undefined:
      return { ...nowhere, leads: true, told: "stateless" };
    case "turn":
      return { ...nowhere, parent: named, remembers: true, leads: named?.turn === tip?.turn, told: "continued" };
    case "conversation":
      return { ...nowhere, parent: tip, remembers: true, waits: true, leads: true, told: tip ? "continued" : "new" };
    case "hint":
      break;
  }
  if (match !== undefined) {
    const speaks = history.lastWords >= match.behind;
    return {
      ...nowhere,
      parent: match.node,
      from: match.behind,
      leads: shows || speaks || match.node.turn === tip?.turn,
      learns: speaks,
      told: match.node.hasFollowers ? "forked" : "matched",
    };
  }
  const { fresh } = history;
  const output = history.outputs.at(-1);
  const maker = output && makers.get(output.callId)?.node;
  if (maker !== undefined && (maker.remembers || history.orphans.has(output as Item)))
    return { ...nowhere, parent: maker, remembers: true, from: fresh, leads: true, told: "continued" };
  if (history.isShown || found.wasAsked) {
    const learns = found.wasAsked && history.isShown && history.lastWords >= fresh;
    return { ...nowhere, leads: tip === undefined || shows, learns, told: "foreign" };
  }
  if (shows || tip === undefined) return { ...nowhere, remembers: true, waits: !shows, leads: true, told: "new" };
  if (claim.isByHeader && tip.depth === 1 && isOtherProgram(claim.program(), tip.program))
    return { ...nowhere, remembers: true, told: "new" };
  return { ...nowhere, parent: tip, remembers: true, waits: true, leads: true, told: "continued" };
}

/** Whether a turn takes the tip from another program's root without tools, even if it saw a different tip. */
export function takesTip({ isByHeader, program }: Claim, { parent }: Place): boolean {
  if (!isByHeader || parent !== undefined) return false;
  const { instructions, offersTools } = program();
  return offersTools && instructions !== undefined;
}

const nowhere = { parent: undefined, remembers: false, from: 0, waits: false, leads: false, learns: false };
