/** Operations on a store, each with its frequency, to be applied to several stores that must not differ. */
import { shownSuffix } from "../../src/core/conversation/address.ts";
import type { Commit, IdempotencyKey, Metadata, PruneRules, StoredTurn } from "../../src/core/store.ts";
import { exportAll, exportOne, importAll, list, readPath, readTurn, searchSession } from "./alike-reading.ts";
import { type Chance, digests, exchanges, hints, keys, pickTurn, type World } from "./alike-world.ts";
import { makeConversation, makeTold, makeTurn, pruneAll } from "./making.ts";

interface StepKind {
  readonly weight: number;
  act(world: World, chance: Chance): Promise<void>;
}

export const stepKinds: Readonly<Record<string, StepKind>> = {
  "continues under a hint": { weight: 5, act: sayMore },
  "continues below a turn": { weight: 3, act: sayBelow },
  "begins a turn": { weight: 2, act: begin },
  "ends what runs": { weight: 2, act: end },
  "completes what runs": { weight: 2, act: complete },
  "abandons all that runs": { weight: 0.3, act: abandon },
  "makes a session": { weight: 1, act: makeSession },
  "changes a session": { weight: 0.5, act: changeSession },
  "changes a turn": { weight: 1, act: changeTurn },
  "deletes a turn": { weight: 1, act: deleteTurn },
  "deletes what follows a turn": { weight: 1, act: deleteBelow },
  "deletes a session": { weight: 0.4, act: deleteSession },
  prunes: { weight: 1, act: prune },
  "reads a turn": { weight: 2, act: readTurn },
  "searches a session": { weight: 1, act: searchSession },
  lists: { weight: 1, act: list },
  exports: { weight: 1, act: exportOne },
  "exports everything into an archive": { weight: 0.5, act: exportAll },
  "imports an archive": { weight: 0.5, act: importAll },
};

const hourMs = 3_600_000;

async function sayMore(world: World, chance: Chance): Promise<void> {
  const { owner, pick, choose, oneIn } = chance;
  const hint = choose(...hints);
  const found = await world.ask(`${owner} looks for the hint ${hint}`, (store) => store.findSession(owner, hint));
  const session = found?.id ?? world.fresh("conv");
  if (found === undefined) world.sessions.push({ id: session, owner });
  const inIt = [...world.turns.values()].filter((turn) => turn.session === session);
  const parent = oneIn(3) ? pick(inIt)?.id : found?.tip;
  const turns = makeTurns(world, chance, {
    session,
    parent,
    digest: choose(...digests),
    exchange: choose(...exchanges),
  });
  const expectedTip = oneIn(5) ? pickTurn(world, chance)?.id : found?.tip;
  const otherwise = choose("branch", "refuse", "branch-if-resends");
  const move = { id: session, hint, expectedTip, otherwise, resends: oneIn(5) };
  const forget = oneIn(6) ? inIt.slice(0, 2).map(({ id }) => id) : [];
  await commit(world, chance, { turns, session: move, forget, key: makeKey(chance) });
}

async function sayBelow(world: World, chance: Chance): Promise<void> {
  const { owner, oneIn } = chance;
  const parent = oneIn(3) ? undefined : pickTurn(world, chance, (turn) => turn.owner === owner);
  const turns = makeTurns(world, chance, { parent: parent?.id, session: parent?.session });
  await commit(world, chance, { turns, key: makeKey(chance) });
}

async function begin(world: World, chance: Chance): Promise<void> {
  const { owner, pick, oneIn } = chance;
  const session = oneIn(2) ? pick(world.sessions.filter((each) => each.owner === owner))?.id : undefined;
  const turn = makeOne(world, chance, { session, status: "running", output: [], usage: undefined });
  const key = makeKey(chance);
  await world.ask(`begin ${toWords(turn)}${key ? ` with ${key.key}` : ""}`, (store) => store.begin(turn, key));
  await readAtTimes(world, chance, turn.id);
}

async function end(world: World, chance: Chance): Promise<void> {
  const running = pickTurn(world, chance, ({ status }) => status === "running");
  if (running === undefined) return;
  const parent = pickParent(world, chance, running);
  const over = { ...running, status: chance.choose("failed", "cancelled"), parent: parent?.id };
  world.turns.set(over.id, over);
  await world.ask(`end ${toWords(over)}`, (store) => store.end(over));
  await readAtTimes(world, chance, over.id);
}

async function complete(world: World, chance: Chance): Promise<void> {
  const running = pickTurn(world, chance, ({ status }) => status === "running");
  if (running === undefined) return;
  const parent = pickParent(world, chance, running);
  const { id, owner, createdAt, session } = running;
  const digest = session === undefined ? undefined : chance.choose(...digests);
  const turns = makeTurns(world, { ...chance, owner }, { id, createdAt, session, parent: parent?.id, digest });
  await commit(world, chance, { turns, begun: true });
}

/**
 * A turn that it may follow, in the same session or outside of one. Only an archive could place a sessionless turn
 * below one in a session, and the memory store prunes such a turn one call later than the others, with the session.
 */
function pickParent(world: World, chance: Chance, { id, owner, session }: StoredTurn): StoredTurn | undefined {
  return pickTurn(world, chance, (turn) => turn.owner === owner && turn.session === session && turn.id !== id);
}

async function abandon(world: World): Promise<void> {
  const failure = { code: "interrupted", message: "It broke off." } as const;
  await world.ask("end all that runs", (store) => store.endRunning(failure, world.now()));
}

async function makeSession(world: World, chance: Chance): Promise<void> {
  const { owner, choose, oneIn } = chance;
  const id = world.fresh("conv");
  const shown = oneIn(2)
    ? makeOne(world, chance, { session: id, status: "shown", output: [], usage: undefined, digest: choose(...digests) })
    : undefined;
  const session = makeConversation({ id, owner, createdAt: world.now(), metadata: { a: "b" }, tip: shown?.id });
  world.sessions.push(session);
  await world.ask(`make ${id}${shown ? ` with ${shown.id}` : ""}`, (store) => store.createSession(session, shown));
}

async function changeSession(world: World, { pick, choose }: Chance): Promise<void> {
  const session = pick(world.sessions);
  if (session === undefined) return;
  const { id, owner } = session;
  const metadata = choose<Metadata>({}, { a: "c" }, { d: "e" });
  await world.ask(`describe ${id}`, (store) => store.updateMetadata(owner, id, metadata));
}

async function changeTurn(world: World, chance: Chance): Promise<void> {
  const id = pickTurn(world, chance)?.id;
  if (id === undefined) return;
  const items = [{ type: "message", role: "user", content: "Something else." }] as const;
  await world.ask(`put other items into ${id}`, (store) => store.replaceItems(id, items, []));
}

async function deleteTurn(world: World, chance: Chance): Promise<void> {
  const turn = pickTurn(world, chance);
  if (turn === undefined) return;
  const owner = chooseOwner(chance, turn);
  await world.ask(`${owner} deletes ${turn.id}`, (store) => store.deleteTurn(owner, turn.id));
}

async function deleteBelow(world: World, chance: Chance): Promise<void> {
  const turn = pickTurn(world, chance);
  if (turn === undefined) return;
  const owner = chooseOwner(chance, turn);
  await world.ask(`${owner} deletes what follows ${turn.id}`, (store) => store.deleteBelow(owner, turn.id));
}

async function deleteSession(world: World, chance: Chance): Promise<void> {
  const session = chance.pick(world.sessions);
  if (session === undefined) return;
  const owner = chooseOwner(chance, session);
  await world.ask(`${owner} deletes ${session.id}`, (store) => store.deleteSession(owner, session.id));
}

/** Usually its owner, but sometimes anyone. */
function chooseOwner({ owner, oneIn }: Chance, whose: Pick<StoredTurn, "owner">): string {
  return oneIn(6) ? owner : whose.owner;
}

async function prune(world: World, { choose }: Chance): Promise<void> {
  const before = new Date(+world.now() - choose(0, hourMs, 24 * hourMs, 72 * hourMs));
  const rules: PruneRules = choose<PruneRules>(
    { idleBefore: before },
    { keysBefore: before },
    { piecesBefore: before },
    { maxSessionsPerOwner: 2 },
    { idleBefore: before, maxSessionsPerOwner: 1 },
  );
  // How many calls it takes is up to each store.
  await world.ask(`prune ${JSON.stringify(rules)}`, async (store) => ({ ...(await pruneAll(store, rules)), calls: 0 }));
}

/** One turn, or a shown history and one turn. */
function makeTurns(world: World, chance: Chance, wanted: Partial<StoredTurn>): Commit["turns"] {
  if (!chance.oneIn(5)) return [makeOne(world, chance, wanted)];
  const id = wanted.id ?? world.fresh("resp");
  const before = { ...wanted, id: `${id}${shownSuffix}`, status: "shown", output: [], usage: undefined } as const;
  const shown = makeOne(world, chance, before);
  return [shown, makeOne(world, chance, { ...wanted, id, parent: shown.id })];
}

function makeOne(world: World, { owner, oneIn }: Chance, wanted: Partial<StoredTurn>): StoredTurn {
  const pieces = [[{ kind: "text", part: 0, lengths: [1, 2] }]] as const;
  const told = oneIn(4) ? { told: makeTold({ endedAt: world.now(), pieces }) } : {};
  const id = wanted.id ?? world.fresh("resp");
  const turn = makeTurn({ owner, createdAt: world.now(), ...told, ...wanted, id });
  world.turns.set(id, turn);
  return turn;
}

function makeKey({ choose, oneIn }: Chance): IdempotencyKey | undefined {
  return oneIn(5) ? { key: choose(...keys), fingerprint: choose("f1", "f2") } : undefined;
}

async function commit(world: World, chance: Chance, wanted: Commit): Promise<void> {
  const { turns, session: move, begun, key, forget = [] } = wanted;
  const words = [
    `store ${turns.map(toWords).join(" and ")}`,
    begun === true ? "which was begun" : "",
    move === undefined ? "" : `where the tip is ${move.expectedTip}, or ${move.otherwise}`,
    key === undefined ? "" : `with ${key.key}`,
    forget.length === 0 ? "" : `without ${forget.join(" and ")}`,
  ];
  await world.ask(words.filter(Boolean).join(", "), (store) => store.commit(wanted));
  await readAtTimes(world, chance, (turns[1] ?? turns[0]).id);
}

/** A store caches what was read, and not only what was stored. */
async function readAtTimes(world: World, { oneIn }: Chance, turnId: string): Promise<void> {
  if (oneIn(2)) await readPath(world, turnId);
}

function toWords({ id, owner, status, session, parent }: StoredTurn): string {
  return `${owner}'s ${status} ${id}${session ? ` of ${session}` : ""}${parent ? ` below ${parent}` : ""}`;
}
