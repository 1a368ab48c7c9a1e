/** What a request is about: what it shows, what the store knows of it, where it hangs, and what the model sees then. */
import { type Step, toContext } from "./context.ts";
import { GatewayError } from "./errors.ts";
import { type Hash, type History, readHistory } from "./history.ts";
import { type Item, keyOf } from "./item.ts";
import { type Claim, type Found, type Place, toPlace } from "./place.ts";
import { resolveReferences } from "./references.ts";
import type { Query, Store } from "./store.ts";
import type { Ask } from "./turn.ts";

/** Who asks, and how its session is named. */
export interface Asker {
  readonly owner: string;
  readonly hint: string | undefined;
  /** Its client is said to show its history, or known to by the kind of its hint. */
  readonly shows: boolean;
}

/** A request, read once. */
export interface Asking {
  readonly ask: Ask;
  readonly owner: string;
  readonly session: string | undefined;
  readonly claim: Claim;
  readonly history: History;
}

/** What is known of it now. */
export interface Seen {
  readonly found: Found;
  readonly place: Place;
}

export async function readAsking(store: Store, given: Ask, asker: Asker, hash: Hash): Promise<Asking> {
  const { owner } = asker;
  const ask = await resolveReferences(store, owner, given);
  const session = sessionOf(store, ask, asker);
  return { ask, owner, session, claim: toClaim(ask, asker), history: readHistory(ask.items, hash) };
}

/** Throws if it names what is not there. */
export async function look(store: Store, asking: Asking): Promise<Seen> {
  const { ask, claim, history } = asking;
  if (claim.name === undefined) return { found: nothing, place: toPlace(claim, history, nothing) };
  const finding = await store.find(toQuery(asking));
  const { match } = finding;
  const found = {
    ...finding,
    match: match && { node: match.node, behind: history.shown[match.depth]?.behind ?? 0 },
  };
  if (claim.name === "turn" && found.named === undefined) throw unknownTurn(ask.previous ?? "");
  if (claim.name === "conversation" && found.session === undefined) throw unknownConversation(ask.conversation ?? "");
  return { found, place: toPlace(claim, history, found) };
}

/** What the model sees of it. */
export async function see(store: Store, { ask, claim, history }: Asking, { found, place }: Seen): Promise<Item[]> {
  const path = place.remembers && place.parent !== undefined ? await store.path(place.parent) : noPath;
  const isNamed = claim.name === "turn" || claim.name === "conversation";
  return toContext({ items: ask.items, itemsParam: ask.itemsParam, isNamed }, history, place, found, path);
}

const noPath: readonly Step[] = [];
const nothing: Found = { session: undefined, named: undefined, wasAsked: false, match: undefined, makers: new Map() };

function sessionOf(store: Store, ask: Ask, { owner, hint }: Asker): string | undefined {
  if (ask.previous !== undefined) return undefined;
  return ask.conversation ?? (hint === undefined ? undefined : store.sessionOf(owner, hint));
}

function toClaim(ask: Ask, { hint, shows }: Asker): Claim {
  if (ask.previous !== undefined) return { name: "turn", shows };
  if (ask.conversation !== undefined) return { name: "conversation", shows };
  return { name: hint === undefined ? undefined : "hint", shows };
}

function toQuery({ ask, owner, session, history }: Asking): Query {
  const isByHint = ask.previous === undefined && ask.conversation === undefined;
  return {
    owner,
    session,
    named: ask.previous === undefined ? undefined : keyOf(ask.previous),
    shown: isByHint ? history.shown : [],
    prefilled: isByHint ? history.prefilled : undefined,
    calls: isByHint ? wantedCalls(history) : [],
  };
}

/** The calls whose makers are wanted: to hang a turn below them, to give a running loop its reasoning, an output its call. */
function wantedCalls({ outputs, running, orphans }: History): readonly string[] {
  if (outputs.length === 0 && running.length === 0 && orphans.size === 0) return none;
  const wanted = new Set([...outputs, ...running].map(({ callId }) => callId));
  for (const orphan of orphans) if (orphan.type === "tool-output") wanted.add(orphan.callId);
  return [...wanted];
}

const none: readonly string[] = [];

function unknownTurn(id: string): GatewayError {
  return new GatewayError("previous_response_not_found", `Previous response with id '${id}' not found.`, {
    param: "previous_response_id",
  });
}

function unknownConversation(id: string): GatewayError {
  return new GatewayError("not_found", `Conversation with id '${id}' not found.`, { param: "conversation" });
}
