/** What the database answers late of a line that changed hands meanwhile: it is still one turn after the other. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { test, type TestContext } from "node:test";
import { tellWell } from "../harness/client.ts";
import { endAfter, gate, openGateway, say, type Script, seenBy, toLines } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { ask, newDatabase } from "../harness/postgres.ts";
import { until } from "../store/aid.ts";

const { skip } = need("postgres");

interface Road {
  readonly address: string;
  /** How many look-ups wait on it. */
  readonly held: number;
  hold(): void;
  pass(): void;
}

/** A way to the same database, on which look-ups of sessions can be held up. */
async function makeRoad(context: TestContext, store: string): Promise<Road> {
  const { hostname, port } = new URL(store);
  const waiting: (() => void)[] = [];
  let isHolding = false;
  const server = createServer((client) => {
    const database = connect(Number(port || 5432), hostname);
    database.pipe(client).on("error", () => database.destroy());
    client.on("close", () => database.destroy());
    database.on("error", () => client.destroy());
    client.on("data", (chunk) => {
      const go = (): void => void database.write(chunk);
      if (isHolding && chunk.includes("JOIN session")) waiting.push(go);
      else go();
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  endAfter(context, () => server.close());
  const address = new URL(store);
  address.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    address: String(address),
    get held() {
      return waiting.length;
    },
    hold() {
      isHolding = true;
    },
    pass() {
      isHolding = false;
      for (const go of waiting.splice(0)) go();
    },
  };
}

test(
  "a look-up that is answered when its line has come, gone and come again lets nobody in twice",
  { skip },
  async (context) => {
    const store = await newDatabase(context);
    const road = await makeRoad(context, store);
    const one = await openGateway(context, { gateway: { sessions: { store } } });
    const other = await openGateway(context, { gateway: { sessions: { store: road.address } } });
    const gates = new Map(["first of one", "second of one"].map((words) => [words, { asked: gate(), go: gate() }]));
    const script: Script = async function* (turn) {
      const words = (toLines(turn.items).at(-1) ?? "").slice("user: ".length);
      gates.get(words)?.asked.open();
      await gates.get(words)?.go.opened;
      yield say("ok");
    };
    for (const { model } of [one, other]) model.script = script;
    const tell = ({ address }: { readonly address: string }, words: string) =>
      tellWell(address, { on: "chat", say: words, more: { user: "ann" } });
    const isSo = (condition: string) =>
      until(async () => (await ask(store, `SELECT 1 FROM claim WHERE ${condition}`)).length === 1);

    await tell(one, "hello");
    const told = [tell(one, "first of one")];
    await gates.get("first of one")?.asked.opened;
    const [{ holder } = {}] = await ask(store, "SELECT holder FROM claim");
    told.push(tell(other, "first of other"));
    await isSo("wanted IS NOT NULL");
    road.hold();
    told.push(tell(other, "second of other"));
    await until(() => road.held === 1);
    gates.get("first of one")?.go.open();
    // The line has come to the other process, which has it when its look-up arrives.
    await isSo(`holder <> ${holder} AND round > 0`);
    told.push(tell(one, "second of one"));
    await isSo("wanted IS NOT NULL");
    road.pass();
    await gates.get("second of one")?.asked.opened;
    await isSo("wanted IS NOT NULL");
    await new Promise((resolve) => setTimeout(resolve, 200));
    gates.get("second of one")?.go.open();
    await Promise.all(told);
    assert.deepEqual(
      seenBy(other.model.turns.at(-1)).filter((line) => line.startsWith("user")),
      ["user: hello", "user: first of one", "user: first of other", "user: second of one", "user: second of other"],
    );
  },
);
