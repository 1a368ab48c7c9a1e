/** Nothing acknowledged is lost: a gateway under load is killed again and again, and its clients go on with the next. */
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { startServer } from "../harness/client.ts";
import { makeFolder } from "../harness/house.ts";
import { type Program, runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { type Client, createClient, gatherShown, takeTurn } from "./clients.ts";

const isLong = process.env["PORTICO_LONG"] === "1";
const [rounds, sessions] = isLong ? [20, 200] : [2, 60];
const seed = Number(process.env["PORTICO_SEED"] || (isLong ? Date.now() % 1_000_000 : 20_261_119));

/** The same numbers for the same seed. */
function createRandom(from: number): (below: number) => number {
  let state = from;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test("no turn whose end a client received is lost, doubled or out of order after kill -9, and none is there by half", async (context) => {
  const random = createRandom(seed);
  const server = await startServer(context);
  const { script } = server;
  // Some turns take a moment, so that each kill finds turns in every state.
  server.script = async (received, response) => {
    // A busy machine may find an idle connection just when its server closes it.
    response.setHeader("connection", "close");
    await wait(random(8));
    return script(received, response);
  };
  const shownFor = gatherShown(server);
  const folder = makeFolder(context);
  const settings = { gateway: { adapters: server.adapters, log: { level: "silent" } } };
  const config = writeConfig(folder, toConfig(settings));
  const start = () => runProgram(context, folder, "start", "--config", config);
  const clients = Array.from({ length: sessions }, (_, index) => createClient(index));
  let acknowledged = 0;
  let cut = 0;

  async function takeTurns(address: string, agent: Agent): Promise<void> {
    const told = await Promise.all(clients.map((client) => takeTurn(client, address, agent, shownFor)));
    assert.ok(told.every(Boolean), "every session goes on");
    acknowledged += told.length;
  }

  async function talkUntilKilled(program: Program, enough: number): Promise<void> {
    const address = await program.address();
    const agent = new Agent({ keepAlive: true });
    let left = enough;
    let isKilled = false;
    async function talk(client: Client): Promise<void> {
      while (!isKilled) {
        const isTold = await takeTurn(client, address, agent, shownFor);
        assert.ok(isTold || isKilled, `${client.user}: an answer was cut off while the gateway was alive`);
        if (isTold) acknowledged += 1;
        left -= 1;
        if (left > 0 || isKilled) continue;
        isKilled = true;
        void program.stop("SIGKILL");
      }
    }
    // Each has its session before the first kill.
    if (acknowledged === 0) await takeTurns(address, agent);
    await Promise.all(clients.map(talk));
    await program.ended;
    agent.destroy();
    cut += clients.filter(({ unheard }) => unheard.length > 0).length;
  }

  for (let round = 0; round < rounds; round += 1) await talkUntilKilled(start(), sessions + random(sessions));

  const last = start();
  const address = await last.address();
  const agent = new Agent({ keepAlive: true });
  for (let turn = 0; turn < 2; turn += 1) await takeTurns(address, agent);
  agent.destroy();
  assert.equal((await last.stop()).code, 0);
  context.diagnostic(`PORTICO_SEED=${seed}: ${acknowledged} turns acknowledged, ${cut} cut by ${rounds} kills`);
  assert.ok(cut > rounds, "turns were in flight");
});
