/** Replicas behind nginx, on one database: whichever of them dies, and if the database does, no acknowledged turn is lost. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { startServer } from "../harness/client.ts";
import { findFreePort, makeFolder } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { newDatabase, openPostgres } from "../harness/postgres.ts";
import { type Program, runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { startBalancer } from "./balancer.ts";
import { type Client, createClient, gatherShown, takeTurn } from "./clients.ts";

const isLong = process.env["PORTICO_LONG"] === "1";
const [sessions, seconds] = isLong ? [200, 120] : [30, 14];
const everyMs = 5_000;
/** Longer than this no thread stands still. */
const patienceMs = 12_000;

const isMissing = need("nginx").skip || need("initdb").skip;

interface Replicas {
  readonly address: string;
  /** Kills the next one, and starts it again. */
  killOne(): Promise<void>;
  readonly shownFor: ReturnType<typeof gatherShown>;
}

async function startReplicas(context: TestContext, store: string): Promise<Replicas> {
  const server = await startServer(context);
  const { script } = server;
  server.script = async (received, response) => {
    response.setHeader("connection", "close");
    await wait(5);
    return script(received, response);
  };
  const ports = [await findFreePort(), await findFreePort(), await findFreePort()];
  const folders = ports.map((port) => {
    const folder = makeFolder(context);
    const settings = {
      gateway: { adapters: server.adapters, sessions: { store }, log: { level: "error" } },
      http: { port },
    };
    writeConfig(folder, toConfig(settings));
    return folder;
  });
  const start = async (index: number): Promise<Program> => {
    const program = runProgram(context, folders[index] ?? "", "start", "--config", "portico.json");
    await program.address();
    return program;
  };
  const running = await Promise.all(ports.map((_, index) => start(index)));
  let next = 0;
  return {
    address: await startBalancer(context, ports),
    async killOne() {
      const index = next++ % running.length;
      await running[index]?.stop("SIGKILL");
      running[index] = await start(index);
    },
    shownFor: gatherShown(server),
  };
}

/** All talk until the time is over; `harm` is done again and again meanwhile. */
async function talkThrough(context: TestContext, replicas: Replicas, harm: () => Promise<void>): Promise<void> {
  const { address, shownFor } = replicas;
  const agent = new Agent({ keepAlive: true, maxSockets: 1_000 });
  const clients = Array.from({ length: sessions }, (_, index) => createClient(index));
  let [acknowledged, cut, longest] = [0, 0, 0];
  const until = performance.now() + seconds * 1_000;
  async function talk(client: Client): Promise<void> {
    let since = performance.now();
    while (performance.now() < until || client.unheard.length > 0) {
      if (await takeTurn(client, address, agent, shownFor, true)) {
        longest = Math.max(longest, performance.now() - since);
        since = performance.now();
        acknowledged += 1;
      } else {
        cut += 1;
        assert.ok(performance.now() - since < 2 * patienceMs, `${client.user} stands still`);
        await wait(50);
      }
      await wait(isLong ? 20 : 0);
    }
  }
  async function harmAgainAndAgain(): Promise<void> {
    for (let at = performance.now() + everyMs; at < until; at += everyMs) {
      await wait(Math.max(0, at - performance.now()));
      await harm();
    }
  }
  await Promise.all([harmAgainAndAgain(), ...clients.map(talk)]);
  agent.destroy();
  context.diagnostic(`${acknowledged} turns acknowledged, ${cut} cut; the longest wait was ${Math.round(longest)} ms`);
  assert.ok(longest < patienceMs, `a thread stood still for ${longest} ms`);
}

test("replicas: one is killed every five seconds", { skip: isMissing }, async (context) => {
  const replicas = await startReplicas(context, await newDatabase(context));
  await talkThrough(context, replicas, replicas.killOne);
});

test("replicas: PostgreSQL is killed and started again", { skip: isMissing }, async (context) => {
  const server = await openPostgres(context, { isDurable: true });
  const replicas = await startReplicas(context, await server.createDatabase());
  await talkThrough(context, replicas, async () => {
    await server.kill();
    await server.start();
  });
});

test(
  "replicas: PostgreSQL is killed, its synchronous standby promoted, and the address moved there",
  { skip: isMissing },
  async (context) => {
    const primary = await openPostgres(context, { isDurable: true });
    const database = await primary.createDatabase();
    const standby = await primary.makeStandby();
    const door = await openDoor(context, primary.port);
    const replicas = await startReplicas(context, withPort(database, door.port));
    let hasMoved = false;
    await talkThrough(context, replicas, async () => {
      if (hasMoved) return;
      hasMoved = true;
      await primary.kill();
      await standby.promote();
      door.moveTo(standby.port);
    });
    assert.ok(hasMoved);
  },
);

function withPort(address: string, port: number): string {
  const moved = new URL(address);
  moved.port = String(port);
  return moved.href;
}

/** A port whose connections go to whichever server has the address now. */
async function openDoor(context: TestContext, first: number) {
  let target = first;
  const sockets = new Set<Socket>();
  const server = createServer((caller) => {
    const called = connect(target, "127.0.0.1");
    for (const [one, other] of [
      [caller, called],
      [called, caller],
    ] as const) {
      sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    port: (server.address() as AddressInfo).port,
    moveTo(port: number): void {
      target = port;
    },
  };
}
