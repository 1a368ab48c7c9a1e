/** What a request is about: what it shows, what the store knows of it, where it hangs, and what the model sees then. */
import { toContext } from "./context.ts";
import { GatewayError } from "./errors.ts";
import { type Hash, type History, readHistory } from "./history.ts";
import { isInstruction, type Item, keyOf, textOf } from "./item.ts";
import { type Claim, type Found, type Place, type Program, toPlace } from "./place.ts";
import type { Query, Store } from "./store.ts";
import type { Ask } from "./turn.ts";

/** Who asks, and how its session is named. */
export interface Asker {
  readonly owner: string;
  readonly hint: string | undefined;
  /** Its client is said to show its history, or known to by the kind of its hint. */
  readonly shows: boolean;
  /** The hint is a header's. */
  readonly isByHeader: boolean;
  /** The hint from the request's `user`, even if something else names its session. */
  readonly userHint?: string | undefined;
}

/** A request, read once. */
export interface Asking {
  readonly ask: Ask;
  readonly owner: string;
  readonly session: string | undefined;
  readonly claim: Claim;
  readonly history: History;
  /** Whether it may continue a tip. */
  readonly mayWait: boolean;
  /** The hint of its `user`, if something else names its session. */
  readonly userHint: string | undefined;
}

/** What is known of it now. */
export interface Seen {
  readonly found: Found;
  readonly place: Place;
}

export async function readAsking(store: Store, ask: Ask, asker: Asker, hash: Hash): Promise<Asking> {
  const session = await sessionOf(store, ask, asker);
  const claim = toClaim(ask, asker, hash);
  const history = readHistory(ask.items, hash);
  const { owner, hint } = asker;
  const userHint = claim.name === "hint" && hint === asker.userHint ? undefined : asker.userHint;
  return { ask, owner, session, claim, history, mayWait: mayWait(claim, history), userHint };
}

/** Throws if it names what is not there. Whoever names nothing is told at once. */
export function look(store: Store, asking: Asking): Seen | Promise<Seen> {
  const { claim, history } = asking;
  if (claim.name === undefined) return { found: nothing, place: toPlace(claim, history, nothing) };
  return lookUp(store, asking);
}

async function lookUp(store: Store, asking: Asking): Promise<Seen> {
  const { ask, claim, history } = asking;
  const finding = await store.find(toQuery(asking));
  const { match } = finding;
  const found = {
    ...finding,
    match: match && { node: match.node, behind: history.talk().shown[match.depth]?.behind ?? 0 },
  };
  if (claim.name === "turn" && found.named === undefined) throw unknownTurn(ask.previous ?? "");
  if (claim.name === "conversation" && found.session === undefined) throw unknownConversation(ask.conversation ?? "");
  return { found, place: toPlace(claim, history, found) };
}

/** What the model sees of it. Where nothing is remembered it is told at once. */
export function see(
  store: Store,
  { ask, claim, history }: Asking,
  { found, place }: Seen,
): readonly Item[] | Promise<readonly Item[]> {
  const isNamed = claim.name === "turn" || claim.name === "conversation";
  const { items, itemsParam, settings } = ask;
  const asked = { items, itemsParam, isNamed, isInstructed: settings.instructions !== undefined };
  if (!place.remembers || place.parent === undefined) return toContext(asked, history, place, found, []);
  return store.path(place.parent).then((path) => toContext(asked, history, place, found, path));
}

const nothing: Found = { session: undefined, named: undefined, wasAsked: false, match: undefined, makers: new Map() };

function sessionOf(store: Store, ask: Ask, { owner, hint }: Asker): string | Promise<string> | undefined {
  if (ask.previous !== undefined) return undefined;
  return ask.conversation ?? (hint === undefined ? undefined : store.sessionOf(owner, hint));
}

function toClaim(ask: Ask, { hint, shows, isByHeader }: Asker, hash: Hash): Claim {
  let known: Program | undefined;
  const program = (): Program => (known ??= toProgram(ask, hash));
  if (ask.previous !== undefined) return { name: "turn", shows, isByHeader: false, program };
  if (ask.conversation !== undefined) return { name: "conversation", shows, isByHeader: false, program };
  if (hint === undefined) return { name: undefined, shows, isByHeader: false, program };
  return { name: "hint", shows, isByHeader, program };
}

function toProgram(ask: Ask, hash: Hash): Program {
  const instructions = instructionsOf(ask);
  return {
    instructions: instructions === "" ? undefined : hash(instructions),
    offersTools: ask.settings.tools.length > 0,
  };
}

/** A program as text, for requests in any process that come during its turn. */
export const writeProgram = ({ instructions = "", offersTools }: Program): string =>
  `${instructions}${offersTools ? "+" : "-"}`;

/** Undefined when items are added to a conversation, or when an older release wrote it. */
export function readProgram(text: string): Program | undefined {
  const [, instructions, sign] = /^(.*)([+-])$/s.exec(text) ?? [];
  return sign === undefined ? undefined : { instructions: instructions || undefined, offersTools: sign === "+" };
}

/** Before anything is known of its session. */
const mayWait = ({ name, shows }: Claim, { isShown }: History): boolean =>
  name === "conversation" || (name === "hint" && !shows && !isShown);

function instructionsOf({ items, settings }: Ask): string {
  const said = items.filter(isInstruction).map((item) => (item.type === "message" ? textOf(item.content) : ""));
  return [settings.instructions ?? "", ...said].filter((text) => text !== "").join("\n");
}

function toQuery({ ask, owner, session, claim, history, mayWait }: Asking): Query {
  const isByHint = ask.previous === undefined && ask.conversation === undefined;
  return {
    owner,
    session,
    named: ask.previous === undefined ? undefined : toNamed(ask.previous),
    shown: isByHint ? history.talk().shown : [],
    prefilled: isByHint ? history.talk().prefilled : undefined,
    calls: isByHint ? wantedCalls(history) : none,
    claim: mayWait ? () => writeProgram(claim.program()) : undefined,
  };
}

/** The ids of items name no turn. */
const toNamed = (id: string): string => (/^(resp_|chatcmpl-)[0-9a-f]+$/.test(id) ? keyOf(id) : "");

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
