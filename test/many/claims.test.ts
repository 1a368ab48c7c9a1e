/** Who has a line, where answers of the database overtake each other. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createClaims } from "../../src/store/postgres/claims.ts";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { prepareTables } from "../../src/store/postgres/layout.ts";
import { joinProcesses } from "../../src/store/postgres/process.ts";
import { need } from "../harness/needs.ts";
import { newSchema } from "../harness/postgres.ts";
import { endAfter } from "../harness/scope.ts";

const { skip } = need("postgres");

const session = "conv_aaaaaaaaaaaaaaaaaaaaaa";
const query = { owner: "", session, named: undefined, shown: [], prefilled: undefined, calls: [], claim: () => "a" };

interface Member {
  readonly claims: ReturnType<typeof createClaims>;
  /** Looks the session up, whose answer comes when the returned function is called. */
  look(): Promise<() => void>;
}

async function open(context: TestContext): Promise<readonly [Member, Member]> {
  const address = await newSchema(context);
  const first = connect(context, address);
  await prepareTables(first);
  return [await join(context, first), await join(context, connect(context, address))];
}

function connect(context: TestContext, address: string): Database {
  const database = openDatabase(address, () => {}, 3);
  endAfter(context, () => database.close());
  return database;
}

async function join(context: TestContext, database: Database): Promise<Member> {
  const process = await joinProcesses(database, async () => {});
  endAfter(context, () => process.leave());
  const claims = createClaims(database, process);
  return {
    claims,
    async look() {
      const { statements, take } = claims.before([query]);
      const told = await database.ask(...statements);
      return () => take(told);
    },
  };
}

const enter = ({ claims }: Member): boolean => claims.port.enter(session);
const wait = ({ claims }: Member): Promise<void> => claims.port.wait(session, "a", new AbortController().signal);
const offer = ({ claims }: Member): Promise<boolean> => claims.port.offer(session);

test(
  "what a look-up was told of a line no longer counts when somebody entered it meanwhile",
  { skip },
  async (context) => {
    const [one, other] = await open(context);
    const answer = await one.look();
    await wait(one);
    const others = wait(other);
    while (await offer(one));
    await others;
    answer();
    assert.equal(enter(one), false, "two processes have it");
  },
);

test(
  "what a look-up was told of a line no longer counts when it was given back meanwhile",
  { skip },
  async (context) => {
    const [one, other] = await open(context);
    const answer = await one.look();
    one.claims.port.release(session);
    await wait(other);
    answer();
    assert.equal(enter(one), false, "two processes have it");
  },
);
