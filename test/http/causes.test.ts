/** What the log says about an adapter whose turns fall back to another. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Adapter, GatewayError, openPortico } from "../../src/index.ts";
import { createAdapterJournal } from "../../src/http/causes.ts";
import { makeFolder } from "../gateway.ts";
import { say } from "../scripted.ts";

type Line = readonly [level: string, message: string, fields: Readonly<Record<string, unknown>>];

function listen() {
  const lines: Line[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push([level, message, { ...fields }]);
  return { lines, log: { info: write("info"), error: write("error") } };
}

test("the log names the cause of a fallback, that the circuit breaker opened, and that the adapter answers again", async (context) => {
  const { lines, log } = listen();
  let fault: GatewayError | undefined;
  const first: Adapter = {
    async *stream() {
      if (fault !== undefined) throw fault;
      yield say("first");
    },
  };
  const second: Adapter = {
    async *stream() {
      yield say("second");
    },
  };
  const own = {
    type: "given",
    fallback: ["second"],
    retry: { times: 0 },
    breaker: { failures: 2, open_ms: 1 },
  } as const;
  const portico = await openPortico(
    {
      gateway: {
        auth: { token: "k".repeat(32) },
        sessions: { store: "memory:" },
        default_adapter: "first",
        adapters: { first: own },
      },
    },
    { folder: makeFolder(context), env: {}, log, adapters: { first, second } },
  );
  context.after(() => portico.close());
  const ask = async () => (await portico.talk({ content: "hi", model: "m" })).text();
  const about = () => lines.splice(0).filter(([, message]) => message !== "turn");

  const cause = new Error("the key is wrong");
  fault = new GatewayError("adapter_refused", "The upstream refused the key (401).", { cause });
  assert.deepEqual([await ask(), await ask()], ["second", "second"]);
  const refused = "The adapter 'first' could not answer, so another was asked: The upstream refused the key (401).";
  assert.deepEqual(about(), [["error", refused, { adapter: "first", code: "adapter_refused", err: cause }]]);

  fault = new GatewayError("adapter_error", "The upstream is down.");
  assert.deepEqual([await ask(), await ask()], ["second", "second"]);
  const down = "The adapter 'first' could not answer, so another was asked: The upstream is down.";
  const rests = "The adapter 'first' has failed too often, so its circuit breaker is open: The upstream is down.";
  assert.deepEqual(
    about().map(([level, message]) => [level, message]),
    [
      ["error", down],
      ["error", rests],
    ],
  );

  fault = undefined;
  while ((await ask()) === "second");
  assert.deepEqual(about().at(-1), ["info", "The adapter 'first' answers again.", { adapter: "first" }]);
});

test("the same kind of failure is logged once a minute", () => {
  const { lines, log } = listen();
  let ms = 0;
  const journal = createAdapterJournal(log, () => ms);
  const fail = (adapter: string, message: string) =>
    journal.fellBack(adapter, new GatewayError("adapter_error", message));
  fail("a", "down");
  fail("a", "down");
  fail("a", "down, as request 2 says");
  fail("b", "down");
  journal.fellBack("a", new GatewayError("adapter_refused", "refused"));
  ms = 60_000;
  fail("a", "down");
  assert.deepEqual(
    lines.map(([, message]) => message.replace(/^The adapter '(.)'.*: /, "$1 ")),
    ["a down", "b down", "a refused", "a down"],
  );
});
