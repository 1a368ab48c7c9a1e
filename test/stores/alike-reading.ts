/** Queries of a store, reported in a form in which equivalent stores do not differ. */
import type { ArchiveRecord, SessionStore } from "../../src/core/store.ts";
import { type Chance, digests, exchanges, hints, keys, owners, pickTurn, type World } from "./alike-world.ts";
import { gather, readTurns, replay } from "./making.ts";

/** Queries everything in both stores; each turn, session and key in only one of them. */
export async function lookAround(world: World, goTo: (store: number) => void): Promise<void> {
  for (const store of [0, 1]) {
    goTo(store);
    await exportAll(world);
  }
  for (const [index, id] of [...world.turns.keys()].entries()) {
    goTo(index % 2);
    await readPath(world, id);
  }
  for (const [index, session] of world.sessions.entries()) {
    goTo(index % 2);
    await searchOne(world, session);
  }
  for (const owner of owners) for (const key of keys) await findKey(world, owner, key);
}

export async function readTurn(world: World, chance: Chance): Promise<void> {
  const turn = pickTurn(world, chance);
  if (turn === undefined) return;
  const { id, owner } = turn;
  await readPath(world, id);
  await world.ask(`read ${id}`, (store) => store.findTurn(owner, id));
}

export async function readPath({ ask }: World, id: string): Promise<void> {
  await ask(`read the path to ${id}`, (store) => readTurns(store, id));
}

export async function searchSession(world: World, { pick }: Chance): Promise<void> {
  const session = pick(world.sessions);
  if (session !== undefined) await searchOne(world, session);
}

async function searchOne({ ask }: World, { id }: World["sessions"][number]): Promise<void> {
  await ask(`read the session ${id}`, (store) => store.readSession(id));
  await ask(`count the threads of ${id}`, (store) => store.countThreads(id));
  for (const some of [digests, digests.slice(2)]) {
    await ask(`look for ${some.join(" or ")} in ${id}`, (store) => store.findTwins(id, "digest", some));
  }
  for (const each of exchanges)
    await ask(`look for ${each} in ${id}`, (store) => store.findTwins(id, "exchange", [each]));
}

export async function list(world: World, { owner, choose }: Chance): Promise<void> {
  const hint = choose(...hints);
  const key = choose(...keys);
  const limit = choose(5, 1);
  const { ask } = world;
  await ask(`list ${limit} sessions`, (store) => store.listSessions({ limit }));
  await ask(`list the sessions under ${hint}`, (store) => store.listSessions({ limit: 5, hint }));
  await ask(`list what ${owner} has outside of sessions`, (store) => listSessionless(store, owner, limit));
  await findKey(world, owner, key);
}

async function findKey({ ask }: World, owner: string, key: string): Promise<void> {
  await ask(`look for ${owner}'s key ${key}`, (store) => store.findKey(owner, key));
}

/** Page by page. The order of roots with the same time is up to each store. */
async function listSessionless(store: SessionStore, owner: string, limit: number) {
  const found = [];
  for (let after: string | undefined; ; after = found.at(-1)?.id) {
    const page = await store.listSessionless({ owner, limit, after });
    found.push(...page);
    if (page.length < limit) break;
  }
  return found.toSorted((one, other) => +other.createdAt - +one.createdAt || (one.id < other.id ? -1 : 1));
}

export async function exportOne(world: World, chance: Chance): Promise<void> {
  const session = chance.pick(world.sessions)?.id;
  if (session !== undefined) await world.ask(`export ${session}`, (store) => gather(store.exportRecords(session)));
  const turn = pickTurn(world, chance)?.id;
  if (turn !== undefined) await world.ask(`export what is around ${turn}`, (store) => exportTree(store, turn));
}

/** The order of the children of a sessionless turn is up to each store. */
async function exportTree(store: SessionStore, turnId: string): Promise<unknown> {
  const records = await gather(store.exportRecords(turnId));
  const turns = records.flatMap((record) => (record.type === "turn" ? [record.turn] : []));
  const seen = new Set<string | undefined>([undefined]);
  const isInOrder = turns.every(({ id, parent }) => seen.has(parent) && seen.add(id));
  return { isInOrder, turns: turns.toSorted((one, other) => (one.id < other.id ? -1 : 1)) };
}

export async function exportAll(world: World): Promise<void> {
  world.archive = await world.ask("export all", gatherAll);
}

/** The order of sessions is up to each store; turns are in the order of their arrival. */
async function gatherAll(store: SessionStore): Promise<readonly ArchiveRecord[]> {
  const records = await gather(store.exportRecords());
  const idOf = (record: ArchiveRecord) => (record.type === "session" ? record.id : "");
  const { store: secrets = [], session = [], turn = [] } = Object.groupBy(records, ({ type }) => type);
  return [...secrets, ...session.toSorted((one, other) => (idOf(one) < idOf(other) ? -1 : 1)), ...turn];
}

export async function importAll({ archive, ask }: World): Promise<void> {
  if (archive !== undefined) await ask("import the archive", (store) => store.importRecords(replay(archive)));
}
