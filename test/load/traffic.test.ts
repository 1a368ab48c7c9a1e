/** Everything at once, from good callers and bad ones: no wrong answer, no 500, and all that was taken is given back. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { begin, call, endpoints, hear, paths, startServer, tell, tellWell, type Wish } from "../harness/client.ts";
import { makeFolder, operatorToken, token } from "../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { until } from "../store/aid.ts";

const isLong = process.env["PORTICO_LONG"] === "1";
/** Of each of two halves, of which the second must not take more than the first. */
const [atOnce, calls, durationMs, dribbling] = isLong ? [60, 0, 30_000, 2_000] : [30, 300, 0, 200];

interface Place {
  readonly address: string;
  readonly port: number;
}

const head = (on: Wish["on"], more: string) =>
  `POST ${paths[on]} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n${more}\r\n\r\n`;

/** What each kind of caller does, and must get. */
const callers: readonly ((place: Place, count: number) => Promise<unknown>)[] = [
  ...endpoints.flatMap((on) =>
    [false, true].map((stream) => async ({ address }: Place, count: number) => {
      const heard = await tellWell(address, { on, stream, say: `say ${count}`, more: { user: `user-${count}` } });
      assert.equal(heard.text, `re: say ${count}`);
    }),
  ),
  async ({ address }, count) => {
    const response = await begin(address, {
      on: "chat",
      stream: true,
      say: `leave ${count}`,
      more: { user: `left-${count}` },
    });
    await hear(response, "data: ");
    response.destroy();
  },
  async ({ address }, count) => {
    const leave = new AbortController();
    const told = tell(address, { on: "responses", say: `leave at once ${count}` }, leave.signal).catch(() => undefined);
    setImmediate(() => leave.abort());
    await told;
  },
  async ({ address }, count) => {
    const heard = await tell(address, { on: "chat", say: "hi", token: `sk-wrong-${count}` });
    assert.ok([401, 429].includes(heard.status), heard.raw);
  },
  async ({ address }) => {
    const heard = await call(address, "POST", paths.chat, '{"model":"any","messages":[');
    assert.deepEqual([heard.status, heard.body.error.code], [400, "invalid_json"]);
  },
  async ({ address }) => assert.equal((await call(address, "GET", "/v1/nothing")).status, 404),
  async ({ port }) => {
    const socket = await dial(port);
    socket.end(`${head("chat", "content-length: 500")}{"model":`);
    await new Promise((resolve) => socket.once("close", resolve));
  },
  async ({ port }, count) => {
    const bodies = [1, 2, 3].map((part) => {
      const text = JSON.stringify({ model: "any", messages: [{ role: "user", content: `pipe ${count} ${part}` }] });
      return head("chat", `content-length: ${Buffer.byteLength(text)}`) + text;
    });
    const socket = await dial(port);
    let heard = "";
    const all = new Promise<void>((resolve, reject) => {
      socket.on("data", (piece: Buffer) => {
        heard += String(piece);
        if (heard.includes(`re: pipe ${count} 3`)) resolve();
      });
      socket.once("close", () => reject(new Error(`It was cut: ${heard}`)));
    });
    socket.write(bodies.join(""));
    await all;
    const places = [1, 2, 3].map((part) => heard.indexOf(`re: pipe ${count} ${part}`));
    assert.deepEqual(
      places,
      places.toSorted((one, other) => one - other),
      "in order",
    );
    socket.destroy();
  },
];

async function dial(port: number) {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {}).resume();
  await new Promise((resolve) => socket.once("connect", resolve));
  return socket;
}

async function measure(address: string): Promise<{ files: number; memory: number; errors: number }> {
  const { raw } = await call(address, "GET", "/metrics", undefined, { token: operatorToken });
  const valueOf = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(raw)?.[1] ?? 0);
  const errors = [...raw.matchAll(/^portico_requests_total\{[^}]*status="500"[^}]*\} (\d+)$/gm)];
  return {
    files: valueOf("process_open_fds"),
    memory: valueOf("process_resident_memory_bytes"),
    errors: errors.reduce((sum, [, value]) => sum + Number(value), 0),
  };
}

test("under mixed traffic every answer is right, none is a 500, and open files and memory come back", async (context) => {
  const server = await startServer(context);
  const folder = makeFolder(context);
  const config = toConfig({ gateway: { adapters: server.adapters, log: { level: "error" } } });
  const program = runProgram(context, folder, "start", "--config", writeConfig(folder, config));
  const address = await program.address();
  const place = { address, port: Number(new URL(address).port) };
  const idle = await measure(address);
  let count = 0;

  async function run() {
    const [enough, untilMs] = [count + calls, Date.now() + durationMs];
    const work = async () => {
      while (count < enough || Date.now() < untilMs) {
        const own = count++;
        await callers[own % callers.length]!(place, own);
      }
    };
    const slow = await Promise.all(Array.from({ length: dribbling }, () => dial(place.port)));
    let sent = 0;
    const dribble = setInterval(() => {
      const letter = head("chat", "content-length: 500")[sent++] ?? "{";
      for (const socket of slow) if (!socket.destroyed) socket.write(letter);
    }, 100);
    try {
      await until(async () => (await measure(address)).files >= idle.files + dribbling / 2);
      await Promise.all(Array.from({ length: atOnce }, work));
    } finally {
      clearInterval(dribble);
      for (const socket of slow) socket.destroy();
    }
    // Idle connections of good callers, and to the model's server, stay open for a while.
    let rest = idle;
    await until(async () => {
      rest = await measure(address);
      return rest.files <= idle.files + 4 * atOnce;
    });
    return rest;
  }

  const before = await run();
  const after = await run();
  context.diagnostic(
    `${count} calls; files ${idle.files}, ${before.files}, ${after.files}; bytes ${before.memory}, ${after.memory}`,
  );
  assert.equal(after.errors, 0);
  assert.ok(after.memory < before.memory + 100e6, `${before.memory} bytes before, ${after.memory} after`);
  const { code, stderr } = await program.stop();
  assert.equal(code, 0);
  assert.doesNotMatch(stderr, /internal_error/);
});
