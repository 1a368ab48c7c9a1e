/** Makes the stored form of a turn. */
import type { Chain, Marks } from "./place/chain.ts";
import { shownSuffix } from "./conversation/address.ts";
import { type Item, isSteering } from "./item.ts";
import { itemsOf, type Path, toPath } from "./place/path.ts";
import type { Place } from "./place/place.ts";
import { isSameSteering, mergeSteering } from "./place/steering.ts";
import { surplusWith, type ThreadLimits } from "./place/surplus.ts";
import type { About } from "./ports.ts";
import { toStoredFailure } from "./frame/replay.ts";
import type { Commit, StoredTurn, Told } from "./store.ts";
import type { Answer } from "./turn.ts";

/** What is known of a turn besides its place and answer. */
export interface TurnRecord {
  readonly owner: string;
  readonly about: About;
  readonly memo: (() => string) | undefined;
  readonly background: boolean;
  /** It may be replayed; of any other turn only what was said is stored. */
  readonly isReplayable: boolean;
}

/**
 * What the caller showed of earlier talk becomes a turn of its own, so that a later request can branch off after it. A
 * thread that exceeds its limits loses its oldest turns.
 */
export function toCommit(
  chain: Chain,
  turnRecord: TurnRecord,
  place: Place,
  answer: Answer,
  limits: ThreadLimits,
): Commit {
  const { path, base, move } = place;
  const hasShown = base.length > 0 && move !== undefined;
  const surplusFor = (input: readonly Item[]) => {
    const added = input.concat(answer.items);
    return surplusWith(path, hasShown ? [base, added] : [added], limits);
  };
  let input = toInput(place);
  let surplus = surplusFor(input);
  // Its system messages are stored again, because their earlier copies are deleted.
  if (input.length < place.input.length && itemsOf(surplus).some(isSteering)) {
    input = place.input;
    surplus = surplusFor(input);
  }
  const forget = surplus.map(({ id }) => id);
  const turn = toTurn(chain, turnRecord, place, answer, input);
  if (!hasShown) return { turns: [turn], session: move, forget };
  const shown = toShown(chain, { ...common(turnRecord, place), id: turn.id, session: move.id }, path, base);
  // Not by extending `path`, whose track the store extends as well; of what came before, its digest is enough.
  const marks = chain.mark(move.id, toPath([shown]), turn.input, turn.output);
  return { turns: [shown, { ...turn, parent: shown.id, ...marks }], session: move, forget };
}

/** History that a caller showed beyond a path, as a turn of its own, named after the turn it came with. */
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
    input: input.map(copy),
    output: [],
    status: "shown",
    usage: undefined,
    ...chain.mark(from.session, path, input, []),
  };
}

/** A finished turn at its place. */
export function toTurn(
  chain: Chain,
  turnRecord: TurnRecord,
  place: Place,
  answer: Answer,
  input = toInput(place),
): StoredTurn {
  const { path, move } = place;
  return {
    ...common(turnRecord, place),
    id: turnRecord.about.id,
    parent: path.tip?.id,
    input: input.map(copy),
    output: answer.items,
    status: answer.status,
    usage: answer.usage,
    ...(turnRecord.isReplayable && { told: toTold(turnRecord, answer) }),
    ...(move === undefined || place.base.length > 0 ? unmarked : chain.mark(move.id, path, input, answer.items)),
  };
}

/**
 * What is remembered must be other objects than what is shown, since they are told apart by identity: a request may
 * have the very items of the one before it, if its body begins with the same bytes.
 */
function copy(item: Item): Item {
  return { ...item };
}

/** Clients send their system messages with every request: those already in force in the thread are not stored again. */
function toInput({ by, input, path }: Place): readonly Item[] {
  const own = by === "hint" ? input.filter(isSteering) : [];
  if (own.length === 0 || !isSameSteering(mergeSteering(path.steering, own), path.steering)) return input;
  return input.filter((item) => !isSteering(item));
}

/** A failed, cancelled or running turn: outside of every thread, but deleted with its session. */
export function toUnthreadedTurn(
  turnRecord: TurnRecord,
  input: readonly Item[],
  answer: Answer | undefined,
): StoredTurn {
  const { owner, about } = turnRecord;
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
    told: { ...toTold(turnRecord, answer), session: about.session },
    ...unmarked,
  };
}

function toTold({ about, memo, background }: TurnRecord, answer: Answer | undefined): Told {
  const { history, contextItems, omittedItems, truncation, remarks } = about;
  return {
    history,
    contextItems,
    omittedItems,
    truncation,
    endedAt: answer?.endedAt,
    finish: answer?.finish ?? "stop",
    others: answer?.others,
    extra: answer?.extra,
    notes: answer?.notes ?? {},
    ...(remarks.length > 0 && { remarks }),
    ...(background && { background }),
    failure: answer?.error && toStoredFailure(answer.error),
    brokenOff: answer?.brokenOff,
    pieces: answer?.pieces,
    memo: memo?.(),
  };
}

function common({ owner, about }: TurnRecord, { move }: Place) {
  return { owner, session: move?.id, createdAt: about.createdAt, model: about.model };
}

/** Outside of sessions nobody looks up a turn by its content. */
const unmarked: Marks = { digest: undefined, exchange: undefined };
