/**
 * Nothing acknowledged is lost: a gateway under load is killed again and again, and its sessions are compared with what
 * clients received.
 */
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { makeFolder } from "../gateway.ts";
import { createRandom } from "../random.ts";
import { type Client, createClient, takeTurn, talkOn } from "./crash-client.ts";
import { compareWithStore } from "./crash-store.ts";
import { type Program, runProgram, toConfig, writeConfig } from "./program.ts";

const rounds = 20;
const sessions = 200;
const seed = Number(process.env["PORTICO_SEED"] || 20_261_101);

test("every turn whose end a client received survives kill -9, exactly once and in order, and no session is damaged", async (context) => {
  const folder = makeFolder(context);
  const config = toConfig({
    adapters: { echo: { type: "echo", delay_ms: 1 } },
    sessions: { store: "sqlite:sessions.db" },
    log: { level: "silent" },
  });
  const start = () => runProgram(context, folder, "start", "--config", writeConfig(folder, config));
  const file = join(folder, "sessions.db");
  const clients = Array.from({ length: sessions }, (_, index) => createClient(index));
  const random = createRandom(seed);
  const total = { acknowledged: 0, kept: 0, lost: 0 };

  for (let round = 0; round < rounds; round += 1) {
    const moment = { afterMs: 50 + random(150), duringAnswers: round % 2 === 1 };
    total.acknowledged += await talkUntilKilled(start(), clients, moment);
    const { kept, lost } = await compareWithStore(file, clients);
    total.kept += kept;
    total.lost += lost;
  }
  await takeLastTurns(start(), clients);
  assert.deepEqual(await compareWithStore(file, clients), { kept: 0, lost: 0 });

  context.diagnostic(
    `seed ${seed}: ${total.acknowledged} turns acknowledged, all kept; in flight at the kills: ${total.kept} kept, ${total.lost} lost`,
  );
  assert.ok(total.acknowledged > sessions * 2, "there was load");
  assert.ok(total.kept + total.lost > sessions, "turns were in flight");
});

interface Moment {
  /** Counted from the first answer, so that a slow machine is not killed before it has done anything. */
  readonly afterMs: number;
  /** Wait for the next answer to end: others have just been stored too and are being sent. */
  readonly duringAnswers: boolean;
}

async function talkUntilKilled(program: Program, clients: readonly Client[], moment: Moment): Promise<number> {
  const address = await program.address();
  const agent = new Agent({ keepAlive: true });
  const killed = new AbortController();
  let next = Promise.withResolvers<void>();
  let acknowledged = 0;
  const answered = () => {
    acknowledged += 1;
    next.resolve();
  };
  const talks = Promise.all(clients.map((client) => talkOn(client, address, agent, killed.signal, answered)));
  await Promise.race([next.promise, talks]);
  await Promise.race([sleep(moment.afterMs), talks]);
  next = Promise.withResolvers<void>();
  if (moment.duringAnswers) await Promise.race([next.promise, talks]);
  killed.abort();
  await Promise.all([program.stop("SIGKILL"), talks]);
  agent.destroy();
  return acknowledged;
}

/** After the last crash every session continues, and the gateway stops normally. */
async function takeLastTurns(program: Program, clients: readonly Client[]): Promise<void> {
  const address = await program.address();
  const agent = new Agent({ keepAlive: true });
  const told = await Promise.all(clients.map((client) => takeTurn(client, address, agent)));
  assert.ok(told.every(Boolean), "every session accepts a turn");
  agent.destroy();
  assert.equal((await program.stop()).code, 0);
}
