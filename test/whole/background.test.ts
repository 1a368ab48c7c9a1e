/** A thousand background responses: some cancelled, some followed from the middle, and the gateway restarted once. */
import assert from "node:assert/strict";
import { Agent, createServer, request as send, type RequestOptions } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { makeFolder, startGateway, token } from "../gateway.ts";
import { collectGarbage } from "../garbage.ts";

const total = 1_000;
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

/** A model with only chat completions, a word at a time, and slow enough to be cancelled. */
async function startModel(context: TestContext): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      let said = 0;
      const timer = setInterval(() => {
        const delta = said < 8 ? { content: `word${said} ` } : {};
        const finish_reason = said < 8 ? null : "stop";
        response.write(`data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
        if (said++ === 8) {
          clearInterval(timer);
          response.end("data: [DONE]\n\n");
        }
      }, 15);
      response.on("close", () => clearInterval(timer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

/** Without `fetch`, which for thousands of requests would cost more than the gateway. */
function receive(url: string, options: RequestOptions, body: string): Promise<{ status?: number; text: string }> {
  return new Promise((resolve, reject) => {
    const request = send(url, { ...options, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.on("error", reject).on("end", () => resolve({ status: response.statusCode, text }));
    });
    request.on("error", reject).end(body);
  });
}

/** Runs through the numbers, so many at a time. */
async function each(numbers: readonly number[], atOnce: number, run: (number: number) => Promise<void>): Promise<void> {
  const left = [...numbers];
  const work = async (): Promise<void> => {
    for (let number = left.shift(); number !== undefined; number = left.shift()) await run(number);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

/** The sequence numbers and the types of a stream's events. */
function readEvents(text: string): { readonly type: string; readonly sequence_number: number }[] {
  return [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json ?? ""));
}

const words = "word0 word1 word2 word3 word4 word5 word6 word7 ";

test("of a thousand background responses none is lost, duplicated or left unfinished, and the memory is released", async (context) => {
  const base_url = await startModel(context);
  const folder = makeFolder(context);
  const settings = {
    adapters: { model: { type: "openai", base_url } },
    sessions: { store: "sqlite:turns.db", max_background_turns: total },
    http: {
      port: 0,
      auth_token: token,
      endpoints: { compat_chat: true, compat_responses: true },
      limits: { drain_timeout_ms: 0 },
    },
  };
  let gateway = await startGateway(context, settings, folder);
  const agent = new Agent({ keepAlive: true });
  context.after(() => agent.destroy());
  const call = async (path: string, { method = "GET", body = "" } = {}): Promise<string> => {
    const { status, text } = await receive(`${gateway.address}${path}`, { method, agent }, body);
    assert.equal(status, 200, text);
    return text;
  };
  const create = async (): Promise<string> => {
    const body = JSON.stringify({ model: "m", input: "Go on.", background: true });
    const { id, status } = JSON.parse(await call("/v1/responses", { method: "POST", body }));
    assert.equal(status, "queued");
    return id;
  };
  const before = collectGarbage().heapUsed;
  const ids = new Map<number, string>();
  const numbers = Array.from({ length: total }, (_, number) => number);
  let resumed = 0;

  async function live(number: number): Promise<void> {
    const id = await create();
    ids.set(number, id);
    if (number % 3 === 0) {
      const { status } = JSON.parse(await call(`/v1/responses/${id}/cancel`, { method: "POST" }));
      assert.ok(["cancelled", "completed"].includes(status), status);
    } else if (number % 3 === 1) {
      const after = number % 16;
      const events = readEvents(await call(`/v1/responses/${id}?stream=true&starting_after=${after}`));
      assert.deepEqual(
        events.map(({ sequence_number }) => sequence_number),
        events.map((_, index) => after + 1 + index),
      );
      assert.equal(events.at(-1)?.type, "response.completed");
      resumed++;
    }
  }

  await each(numbers.slice(0, 900), 60, live);
  // The last hundred are still running when the gateway is closed.
  await each(numbers.slice(900), 100, async (number) => void ids.set(number, await create()));
  await gateway.close();
  gateway = await startGateway(context, settings, folder);

  const counts: Record<string, number> = {};
  await each(numbers, 40, async (number) => {
    const id = ids.get(number);
    const response = JSON.parse(await call(`/v1/responses/${id}`));
    counts[response.status] = (counts[response.status] ?? 0) + 1;
    if (response.status === "failed") assert.equal(response.error.code, "server_error");
    if (response.status === "completed") assert.equal(response.output[0].content[0].text, words);
    if (number % 10 !== 0) return;
    // What was stored is replayed without a gap, from the beginning and from the middle.
    const events = readEvents(await call(`/v1/responses/${id}?stream=true`));
    assert.deepEqual(
      events.map(({ sequence_number }) => sequence_number),
      events.map((_, index) => index),
    );
    const rest = readEvents(await call(`/v1/responses/${id}?stream=true&starting_after=2`));
    assert.deepEqual(rest, events.slice(3));
  });
  assert.deepEqual(Object.keys(counts).toSorted(), ["cancelled", "completed", "failed"]);
  assert.equal((counts["completed"] ?? 0) + (counts["cancelled"] ?? 0) + (counts["failed"] ?? 0), total);
  assert.equal(resumed, 300);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const grown = (collectGarbage().heapUsed - before) / 1024 / 1024;
  assert.ok(grown < 25, `${grown.toFixed(1)} MB more than before`);
  context.diagnostic(
    `${JSON.stringify(counts)}, ${resumed} followed from the middle, ${grown.toFixed(1)} MB more heap`,
  );
});
