/** Makes of a turn what the store keeps of it, and tells why it was not kept. */
import type { Chain, Marks } from "./place/chain.ts";
import { shownSuffix } from "./conversation/address.ts";
import { GatewayError, toGatewayError } from "./errors.ts";
import type { Event } from "./event.ts";
import { type Item, isSteering } from "./item.ts";
import { bringIntoForce } from "./place/force.ts";
import { extend, itemsOf, type Path, surplusOf } from "./place/path.ts";
import { noConversation, noPrevious, type Place } from "./place/place.ts";
import { isSameSteering } from "./place/steering.ts";
import type { About } from "./ports.ts";
import { failedTurn } from "./frame/frame.ts";
import { toStoredFailure } from "./frame/replay.ts";
import type { Commit, IdempotencyKey, SessionStore, StoredTurn, Told } from "./store.ts";
import type { Answer } from "./turn.ts";

/** What is known of a turn beside its place and its answer. */
export interface Keepsake {
  readonly owner: string;
  readonly about: About;
  readonly memo: (() => string) | undefined;
  readonly background: boolean;
  /** Someone may ask for it again; of any other turn only what was said is kept. */
  readonly isRetold: boolean;
}

/**
 * What the caller showed of the time before becomes a turn of its own, so that a later request can branch off behind it.
 * A thread that grows beyond its bound loses its oldest turns.
 */
export function toCommit(
  chain: Chain,
  keepsake: Keepsake,
  place: Place,
  answer: Answer,
  maxTurnsPerThread: number,
): Commit {
  const { path, base, move } = place;
  const hasShown = base.length > 0 && move !== undefined;
  const surplus = surplusOf(path, path.length + (hasShown ? 2 : 1) - maxTurnsPerThread);
  const forget = surplus.map(({ id }) => id);
  const turn = toTurn(chain, keepsake, place, answer, itemsOf(surplus).some(isSteering));
  if (!hasShown) return { turns: [turn], session: move, forget };
  const shown = toShown(chain, { ...common(keepsake, place), id: turn.id, session: move.id }, path, base);
  const marks = chain.mark(move.id, extend(path, shown), turn.input, turn.output);
  return { turns: [shown, { ...turn, parent: shown.id, ...marks }], session: move, forget };
}

/** What a caller says was said behind a path, as a turn of its own: it goes by the name of the one that it came with. */
export function toShown(
  chain: Chain,
  from: Pick<StoredTurn, "id" | "owner" | "createdAt" | "model"> & { readonly session: string },
  path: Path,
  input: readonly Item[],
): StoredTurn {
  return {
    ...from,
    id: `${from.id}${shownSuffix}`,
    parent: path.tip?.id,
    input,
    output: [],
    status: "shown",
    usage: undefined,
    ...chain.mark(from.session, path, input, []),
  };
}

/** A turn that is over, at its place. `keepsSteering`: what was kept of its system messages before is forgotten with this turn. */
export function toTurn(
  chain: Chain,
  keepsake: Keepsake,
  place: Place,
  answer: Answer,
  keepsSteering = false,
): StoredTurn {
  const { path, move } = place;
  const input = keepsSteering ? place.input : toInput(place);
  return {
    ...common(keepsake, place),
    id: keepsake.about.id,
    parent: path.tip?.id,
    input,
    output: answer.items,
    status: answer.status,
    usage: answer.usage,
    ...(keepsake.isRetold && { told: toTold(keepsake, answer) }),
    ...(move === undefined || place.base.length > 0 ? unmarked : chain.mark(move.id, path, input, answer.items)),
  };
}

/** Clients send their system messages with every request: those that are in force in a session's thread are not kept again. */
function toInput({ by, input, path }: Place): readonly Item[] {
  const own = by === "hint" ? input.filter(isSteering) : [];
  if (own.length === 0 || !isSameSteering(bringIntoForce(path.steering, own), path.steering)) return input;
  return input.filter((item) => !isSteering(item));
}

/** A turn that came to nothing, or has not come to anything yet: outside of every thread, but deleted with its session. */
export function toLoneTurn(keepsake: Keepsake, input: readonly Item[], answer: Answer | undefined): StoredTurn {
  const { owner, about } = keepsake;
  return {
    id: about.id,
    owner,
    session: about.session,
    parent: undefined,
    createdAt: about.createdAt,
    model: about.model,
    input,
    output: answer?.items ?? [],
    status: answer?.status ?? "running",
    usage: answer?.usage,
    told: { ...toTold(keepsake, answer), ...(about.session !== undefined && { session: about.session }) },
    ...unmarked,
  };
}

/** Keeps a turn that came to nothing; `begun`: the store knows it as running. Of one whose session was deleted meanwhile nothing stays. */
export async function keepLone(
  store: Pick<SessionStore, "readSession" | "begin" | "end" | "deleteTurn">,
  keepsake: Keepsake,
  { session, input }: Place,
  answer: Answer,
  begun: boolean,
): Promise<void> {
  const lone = toLoneTurn(keepsake, input, answer);
  if (begun) await store.end(lone);
  else await store.begin(lone);
  // Looked for only now: what is kept while its session is there goes with it.
  const isGone = session !== undefined && (await store.readSession(session.id)) === undefined;
  if (isGone) await store.deleteTurn(lone.owner, lone.id);
}

/** Makes a turn known as running. A store that fails now may have kept it all the same, and nobody else would ever end it. */
export async function beginLone(
  store: Pick<SessionStore, "begin" | "end">,
  keepsake: Keepsake,
  input: readonly Item[],
  key: IdempotencyKey | undefined,
  now: () => Date,
): Promise<void> {
  try {
    await store.begin(toLoneTurn(keepsake, input, undefined), key);
  } catch (thrown) {
    await endFailed(store, keepsake, input, toGatewayError(thrown), now());
    throw thrown;
  }
}

/** Ends a turn that the store knows as running and that failed before its first word; gives the events that tell so. */
export async function endFailed(
  store: Pick<SessionStore, "end">,
  keepsake: Keepsake,
  input: readonly Item[],
  failure: GatewayError,
  endedAt: Date,
): Promise<readonly Event[]> {
  const events = failedTurn(failure, endedAt);
  // A store that fails now, and later too, leaves the turn as running, and that is told as interrupted.
  await store.end(toLoneTurn(keepsake, input, events[1].answer)).catch(() => false);
  return events;
}

/** What a turn goes on from is gone, or something else was said behind it while the turn ran. */
export async function whyNotKept(store: SessionStore, { by, session, path }: Place): Promise<GatewayError> {
  const meanwhile = "was deleted while this turn ran, so the turn was not kept";
  if (by === "conversation" && session !== undefined && (await store.readSession(session.id)) === undefined) {
    return noConversation(session.id, meanwhile);
  }
  const previous = path.tip;
  if (by === "response" && previous && (await store.findTurn(previous.owner, previous.id)) === undefined) {
    return noPrevious(previous.id, meanwhile);
  }
  return new GatewayError(
    "session_busy",
    "The session changed while this turn ran, so the turn was not kept. Send it again.",
    { retryAfterSeconds: 1 },
  );
}

function toTold({ about, memo, background }: Keepsake, answer: Answer | undefined): Told {
  const { history, contextItems, omittedItems, truncation, remarks } = about;
  return {
    history,
    contextItems,
    omittedItems,
    truncation,
    endedAt: answer?.endedAt,
    finish: answer?.finish ?? "stop",
    ...(answer?.others !== undefined && { others: answer.others }),
    notes: answer?.notes ?? {},
    ...(remarks.length > 0 && { remarks }),
    ...(background && { background }),
    ...(answer?.error !== undefined && { failure: toStoredFailure(answer.error) }),
    brokenOff: answer?.brokenOff,
    pieces: answer?.pieces,
    memo: memo?.(),
  };
}

function common({ owner, about }: Keepsake, { move }: Place) {
  return { owner, session: move?.id, createdAt: about.createdAt, model: about.model };
}

/** Outside sessions nobody looks for a turn by what was said. */
const unmarked: Marks = { digest: undefined, exchange: undefined };
