/** What the log contains about turns that outlive their callers. */
import assert from "node:assert/strict";
import { request as send } from "node:http";
import { suite, test, type TestContext } from "node:test";
import type { Adapter } from "../../src/index.ts";
import { openPortico } from "../../src/index.ts";
import { makeFolder, token } from "../gateway.ts";
import { say, usage } from "../scripted.ts";

interface Line extends Readonly<Record<string, unknown>> {
  readonly level: string;
  readonly message: string;
}

const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

/** A gateway with one adapter, and a log that records its lines. */
async function open(context: TestContext, stream: Adapter["stream"]) {
  const lines: Line[] = [];
  const write = (level: string) => (fields: object, message: string) => void lines.push({ ...fields, level, message });
  const http = { port: 0, auth_token: token, endpoints: { compat_chat: true, compat_responses: true } };
  const portico = await openPortico(
    { gateway: { http, sessions: { store: "memory:" } } },
    {
      folder: makeFolder(context),
      env: {},
      log: { info: write("info"), error: write("error") },
      adapters: { agent: { stream } },
    },
  );
  context.after(() => portico.close());
  return {
    portico,
    lines,
    of: (message: string) => lines.filter((line) => line.message === message),
    /** The first matching line, as soon as it is there. */
    async find(isIt: (line: Line) => boolean): Promise<Line> {
      for (;;) {
        const found = lines.find(isIt);
        if (found !== undefined) return found;
        await new Promise(setImmediate);
      }
    },
    post: async (body: object, more: object = {}) => {
      const request = { method: "POST", headers: { ...headers, ...more } };
      const ask = JSON.stringify({ model: "m", input: "hi", ...body });
      return (await fetch(`${portico.address}/v1/responses`, { ...request, body: ask })).text();
    },
  };
}

const isTurn = ({ message }: Line) => message === "turn";

suite("the log", () => {
  test("has a line for a background turn when it ends, with the same fields as a request's", async (context) => {
    const { post, find, of } = await open(context, async function* () {
      yield [...say("hello"), { type: "usage", usage }];
    });
    const { id } = JSON.parse(await post({ background: true, user: "u" })) as { id: string };
    const { ms, session, ...line } = await find(isTurn);
    assert.ok(Number.isInteger(ms));
    assert.match(String(session), /^conv_/);
    assert.deepEqual(line, {
      level: "info",
      message: "turn",
      turnId: id,
      owner: "default",
      model: "m",
      adapter: "agent",
      upstreamModel: "m",
      history: "new",
      inputTokens: usage.inputTokens,
      cachedTokens: usage.cachedTokens,
      outputTokens: usage.outputTokens,
      code: undefined,
    });
    const request = await find(({ message }) => message === "request");
    assert.deepEqual([request["turnId"], request["model"]], [id, "m"], "the request's line refers to it");
    assert.equal(of("turn").length, 1);
  });

  test("has the code and the cause of one that failed, before its first word or after it", async (context) => {
    for (const isLate of [false, true]) {
      const { post, find, lines } = await open(context, async function* () {
        if (isLate) yield say("half");
        throw new TypeError("the agent has lost its mind");
      });
      const { id } = JSON.parse(await post({ background: true })) as { id: string };
      const { code, adapter } = await find(isTurn);
      assert.deepEqual([code, adapter], ["adapter_error", "agent"]);
      const cause = await find(({ level }) => level === "error");
      assert.deepEqual([cause["turnId"], cause["code"]], [id, "adapter_error"]);
      assert.match((cause["err"] as Error).stack ?? "", /TypeError: the agent has lost its mind\n +at .*alone\.test/);
      assert.equal(lines.filter(({ level }) => level === "error").length, 1);
    }
  });

  test("has a line for a turn with a key whose caller has disconnected, and none if the caller stays", async (context) => {
    const begun = Promise.withResolvers<void>();
    const going = Promise.withResolvers<void>();
    const { portico, post, find, of, lines } = await open(context, async function* () {
      yield say("half");
      begun.resolve();
      await going.promise;
      throw new Error("out of words");
    });
    const more = { "idempotency-key": "k1" };
    const leaving = send(`${portico.address}/v1/responses`, { method: "POST", headers: { ...headers, ...more } });
    leaving.on("error", () => {});
    leaving.end(JSON.stringify({ model: "m", input: "hi", stream: true }));
    await begun.promise;
    leaving.destroy();
    const left = await find(({ status }) => status === 499);
    assert.equal(of("turn").length, 0);
    going.resolve();
    const { turnId, code } = await find(isTurn);
    assert.deepEqual([turnId, code], [left["turnId"], "adapter_error"]);
    assert.equal((await find(({ level }) => level === "error"))["turnId"], turnId);

    for (const stream of [false, true]) await post({ stream }, { "idempotency-key": `stays ${stream}` });
    await post({ stream: true, background: true });
    while (of("request").length < 4) await new Promise(setImmediate);
    assert.equal(of("turn").length, 1, "those that stayed have their own lines");
    assert.equal(lines.filter(({ level }) => level === "error").length, 4);
  });

  test("has one cause for all turns that a shutdown interrupted", async (context) => {
    const { portico, post, of, lines } = await open(context, async function* (_turn, signal) {
      yield say("on");
      await new Promise((_resolve, reject) => signal.addEventListener("abort", reject));
    });
    await portico.reload({
      gateway: {
        http: {
          port: 0,
          auth_token: token,
          endpoints: { compat_chat: true, compat_responses: true },
          limits: { drain_timeout_ms: 0 },
        },
        sessions: { store: "memory:" },
      },
    });
    for (let times = 0; times < 3; times++) await post({ background: true });
    await portico.close();
    assert.deepEqual(
      of("turn").map(({ code }) => code),
      ["interrupted", "interrupted", "interrupted"],
    );
    assert.equal(lines.filter(({ level }) => level === "error").length, 1);
  });
});
