/**
 * What every adapter must do, defined once: each adapter's test file provides an upstream that sends what the scenario
 * asks.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { type ErrorCode, GatewayError } from "../../src/core/errors.ts";
import type { Adapter } from "../../src/core/ports.ts";
import type { Finish, Turn, Usage } from "../../src/core/turn.ts";
import { startStopwatch } from "../stopwatch.ts";

export type Scenario =
  | "text"
  | "parallel-tools"
  | "reasoning"
  | "usage"
  | "length"
  /** The upstream fails with `failure` and sends nothing. */
  | "error-before"
  /** It sends its pieces and fails with `failure`. */
  | "error-after"
  /** It sends its pieces and then nothing, without an end. */
  | "hang"
  /** It sends its one piece again and again, up to `times`, as fast as it can. */
  | "flood"
  /** It sends each piece after the first only when those before it were received. */
  | "drip";

/**
 * What the upstream sends, in this order: reasoning, pieces, calls, usage, finish. Lists may be empty. An adapter whose
 * upstream cannot send something says so in its abilities.
 */
export interface Said {
  /** The turn of the adapter: it offers the tools that are called, and asks for reasoning where some is sent. */
  readonly turn: Turn;
  readonly reasoning: readonly string[];
  /** The answer's text, in the pieces in which it is sent. */
  readonly pieces: readonly string[];
  /** Parallel calls of one answer. */
  readonly calls: readonly SaidCall[];
  readonly usage: Usage;
  readonly finish: Finish;
  readonly failure: SaidFailure | undefined;
  /** How often the piece of a flood is sent at most. */
  readonly times: number;
  /** Resolves when so many pieces have been received; for "drip". */
  received(pieces: number): Promise<void>;
}

export interface SaidCall {
  readonly callId: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

export interface SaidFailure {
  /** The status that an HTTP server would answer with, before its first word. */
  readonly status: number;
  readonly message: string;
  /** The code that the adapter must give it. */
  readonly code: ErrorCode;
}

export interface Scene {
  readonly adapter: Adapter;
  /** Resolves when the upstream sees that the adapter has released it: socket closed, child gone, iterator ended. */
  readonly gone: Promise<void>;
  /** For "hang", when the pieces cannot be sent before it: resolves when the silence has begun. */
  readonly hanging?: Promise<void> | undefined;
  /** For "flood": how many pieces the upstream could send so far. */
  pushed(): number;
  close(): Promise<void>;
}

/** What an adapter cannot do. */
export interface Abilities {
  readonly reasoning?: false;
  readonly tools?: false;
  /** Its upstream gives calls no ids; the core adds them. */
  readonly callIds?: false;
  /** Its upstream does not count cached and reasoning tokens. */
  readonly tokenDetails?: false;
  /** Its upstream cannot mark a failure as a rate limit: any failure is an `adapter_error`. */
  readonly rateLimits?: false;
  readonly backPressure?: false;
}

type Open = (scenario: Scenario, said: Said) => Promise<Scene>;

export function adapterContract(name: string, open: Open, abilities: Abilities = {}): void {
  const can = (ability: keyof Abilities) => abilities[ability] !== false;

  function it(
    scenario: Scenario,
    sentence: string,
    run: (delivery: Delivery) => Promise<void>,
    changes?: Changes,
  ): void {
    test(sentence, { timeout: 20_000 }, async () => {
      const { said, receive } = createSaid(scenario, changes);
      const scene = await open(scenario, said);
      const caller = new AbortController();
      const stream = scene.adapter.stream(said.turn, caller.signal)[Symbol.asyncIterator]();
      const delivery: Delivery = {
        said,
        scene,
        caller,
        deltas: [],
        characters: 0,
        async next() {
          const result = await stream.next();
          if (result.done === true) return undefined;
          delivery.deltas.push(...result.value);
          delivery.characters += textOf(result.value).length;
          receive(delivery.characters);
          return result.value;
        },
      };
      try {
        await run(delivery);
      } finally {
        caller.abort();
        await scene.close();
      }
    });
  }

  describe(`the ${name} adapter`, { concurrency: false }, () => {
    it("text", "emits a text completely and in order", emitsText);

    it("text", "emits the same text when the answer is not streamed", emitsText, { stream: false });

    if (can("tools")) {
      it("parallel-tools", "emits parallel calls with their ids, names and arguments", async (delivery) => {
        await drain(delivery);
        const calls = callsOf(delivery.deltas);
        const expected = can("callIds")
          ? delivery.said.calls
          : delivery.said.calls.map((call) => ({ ...call, callId: undefined }));
        assert.deepEqual(calls, expected);
        assert.equal(finishOf(delivery.deltas) ?? "tool-calls", "tool-calls");
      });
    }

    if (can("reasoning")) {
      it("reasoning", "emits reasoning before text", async (delivery) => {
        await drain(delivery);
        const types = delivery.deltas.map((delta) => delta.type);
        assert.equal(reasoningOf(delivery.deltas), delivery.said.reasoning.join(""));
        assert.equal(textOf(delivery.deltas), delivery.said.pieces.join(""));
        assert.ok(types.lastIndexOf("reasoning") < types.indexOf("text"), types.join(" "));
      });
    }

    it("usage", "emits the usage of the answer", async (delivery) => {
      await drain(delivery);
      const usage = delivery.deltas.findLast((delta) => delta.type === "usage")?.usage;
      const none = { cachedTokens: 0, reasoningTokens: 0 };
      assert.deepEqual(usage, can("tokenDetails") ? delivery.said.usage : { ...delivery.said.usage, ...none });
    });

    it("length", "emits the finish reason length when the answer reached its limit", async (delivery) => {
      await drain(delivery);
      assert.equal(textOf(delivery.deltas), delivery.said.pieces.join(""));
      assert.equal(finishOf(delivery.deltas), "length");
    });

    it("error-before", "throws a failure before the first word with its error code", async (delivery) => {
      const code = can("rateLimits") ? delivery.said.failure?.code : "adapter_error";
      await assert.rejects(drain(delivery), failsWith(code));
      assert.deepEqual(delivery.deltas, []);
    });

    it("error-after", "emits the text before a failure, then throws it", async (delivery) => {
      await assert.rejects(drain(delivery), failsWith(delivery.said.failure?.code));
      assert.equal(textOf(delivery.deltas), delivery.said.pieces.join(""));
    });

    it("hang", "releases the upstream within 100 ms of an abort, and throws", async (delivery) => {
      const { scene, said, caller } = delivery;
      const silent = withResolvers();
      const ended = assert.rejects(
        drain(delivery, () => {
          if (textOf(delivery.deltas) === said.pieces.join("")) silent.resolve();
        }),
        failsWith("client_closed"),
      );
      await Promise.race([scene.hanging ?? silent.promise, ended]);
      const watch = startStopwatch();
      caller.abort();
      await scene.gone;
      await ended;
      const tookMs = watch.stop();
      assert.ok(tookMs < 100, `It took ${tookMs} ms.`);
    });

    it("drip", "emits every piece as it arrives", async (delivery) => {
      const texts: string[] = [];
      await drain(delivery, (batch) => void texts.push(textOf(batch)));
      assert.deepEqual(
        texts.filter((text) => text !== ""),
        delivery.said.pieces,
      );
    });

    if (can("backPressure")) {
      it("flood", "applies back-pressure to the upstream while the reader does not read", async (delivery) => {
        const { scene, said, caller } = delivery;
        const [piece = ""] = said.pieces;
        while (delivery.characters === 0) assert.ok(await delivery.next(), "It ended before its first word.");
        const stalled = await settled(() => scene.pushed());
        assert.ok(stalled < said.times, `All ${stalled} pieces were sent though nobody read them.`);
        while (delivery.characters <= stalled * piece.length) {
          assert.ok(await delivery.next(), "It ended when the reader continued.");
        }
        assert.ok(scene.pushed() > stalled, "The upstream did not continue with the reader.");
        caller.abort();
        await assert.rejects(drain(delivery), failsWith("client_closed"));
        await scene.gone;
      });
    }
  });
}

interface Delivery {
  readonly said: Said;
  readonly scene: Scene;
  readonly caller: AbortController;
  /** All deltas so far. */
  readonly deltas: Delta[];
  /** The length of the text so far. */
  characters: number;
  next(): Promise<readonly Delta[] | undefined>;
}

async function emitsText(delivery: Delivery): Promise<void> {
  await drain(delivery);
  assert.equal(textOf(delivery.deltas), delivery.said.pieces.join(""));
  assert.equal(finishOf(delivery.deltas) ?? "stop", "stop");
}

async function drain(delivery: Delivery, each: (batch: readonly Delta[]) => void = () => {}): Promise<void> {
  for (let batch = await delivery.next(); batch !== undefined; batch = await delivery.next()) each(batch);
}

/** The value at which a count stops: only time can show that nothing more happens. */
async function settled(count: () => number): Promise<number> {
  let last = count();
  for (let same = 0; same < 10;) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    same = count() === last ? same + 1 : 0;
    last = count();
  }
  return last;
}

function failsWith(code: ErrorCode | undefined) {
  return (thrown: unknown) => {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    assert.equal(thrown.code, code, thrown.message);
    return true;
  };
}

function textOf(deltas: readonly Delta[]): string {
  return deltas.map((delta) => (delta.type === "text" ? delta.text : "")).join("");
}

function reasoningOf(deltas: readonly Delta[]): string {
  return deltas.map((delta) => (delta.type === "reasoning" ? delta.text : "")).join("");
}

function finishOf(deltas: readonly Delta[]): Finish | undefined {
  return deltas.findLast((delta) => delta.type === "finish")?.reason;
}

function callsOf(deltas: readonly Delta[]): readonly unknown[] {
  const calls = new Map<number, { callId: string | undefined; name: string; arguments: string }>();
  for (const delta of deltas) {
    if (delta.type === "tool-call") {
      assert.equal(delta.kind ?? "function", "function");
      assert.ok(!calls.has(delta.index), `Two calls have the index ${delta.index}.`);
      calls.set(delta.index, { callId: delta.callId, name: delta.name, arguments: "" });
    }
    if (delta.type !== "tool-arguments") continue;
    const call = calls.get(delta.index);
    assert.ok(call, "Arguments came before their call.");
    call.arguments += delta.text;
  }
  return [...calls.values()];
}

type Changes = { readonly stream: boolean };

/** `receive` takes how many characters were received so far, and wakes those who wait for that many. */
function createSaid(scenario: Scenario, changes: Changes = { stream: true }) {
  const waiting: { readonly characters: number; resolve(): void }[] = [];
  let receivedCharacters = 0;
  const { reasoning = [], pieces = ["Hello, ", "world."], calls = [], failure, finish = "stop" } = script[scenario];
  const said: Said = {
    turn: toTurn(changes.stream, calls, reasoning.length > 0),
    reasoning,
    pieces,
    calls,
    usage: { inputTokens: 11, cachedTokens: 4, outputTokens: 7, reasoningTokens: 2 },
    finish,
    failure,
    times: 64 * 1024,
    received(count) {
      const characters = pieces.slice(0, count).join("").length;
      if (receivedCharacters >= characters) return Promise.resolve();
      const { promise, resolve } = withResolvers();
      waiting.push({ characters, resolve });
      return promise;
    },
  };
  function receive(characters: number): void {
    receivedCharacters = characters;
    for (const { resolve } of waiting.filter((one) => one.characters <= characters)) resolve();
  }
  return { said, receive };
}

const script: Record<Scenario, Partial<Pick<Said, "reasoning" | "pieces" | "calls" | "failure" | "finish">>> = {
  text: { pieces: ["Grüße ", "an ", "die ", "世界, ", "the ", '"world" ', "and\n", "🏳️‍🌈 ", "<b>&amp;</b>\\n ", "too."] },
  "parallel-tools": {
    pieces: [],
    calls: [
      { callId: "call_paris", name: "get_weather", arguments: '{"city":"Paris, France","days":2}' },
      { callId: "call_rome", name: "get_time", arguments: '{"zone":"Europe/Rome"}' },
    ],
    finish: "tool-calls",
  },
  reasoning: {
    reasoning: ["thinking ", "about: ", "the ", "blue ", "sky"],
    pieces: ["the ", "blue ", "sky"],
  },
  usage: { pieces: ["one ", "two ", "three ", "four ", "five ", "six ", "seven"] },
  length: { pieces: ["It ", "was ", "the "], finish: "length" },
  "error-before": {
    pieces: [],
    failure: { status: 429, message: "Slow down, please.", code: "adapter_rate_limit" },
  },
  "error-after": {
    failure: { status: 500, message: "The model fell over.", code: "adapter_error" },
  },
  hang: {},
  flood: { pieces: [`${"x".repeat(1023)} `] },
  drip: { pieces: ["Drop ", "by ", "drop ", "it ", "rains."] },
};

function toTurn(stream: boolean, calls: readonly SaidCall[], reasons: boolean): Turn {
  return {
    id: "resp_0123456789abcdef",
    model: "model-1",
    items: [{ type: "message", role: "user", content: "Say what you are told to say." }],
    settings: {
      tools: calls.map(({ name }) => ({ type: "function", name, parameters: { type: "object" } })),
      reasoningEffort: reasons ? "low" : undefined,
    },
    stream,
  };
}

function withResolvers(): { readonly promise: Promise<void>; resolve(): void } {
  return Promise.withResolvers<void>();
}
