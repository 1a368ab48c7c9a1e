/** What every adapter must do, told once: each adapter's test file plays the other side, which says what it is told to say. */
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
  /** It fails with `failure` and says nothing. */
  | "error-before"
  /** It says its pieces and fails with `failure`. */
  | "error-after"
  /** It says its pieces and then nothing, without an end. */
  | "hang"
  /** It says its one piece again and again, up to `times`, as fast as it can. */
  | "flood"
  /** It says each piece after the first only when those before it were heard. */
  | "drip";

/**
 * What the other side says, in this order: reasoning, pieces, calls, usage, finish. Lists may be empty. An adapter whose
 * other side has no such words says so in its abilities.
 */
export interface Said {
  /** What the adapter is asked: it offers the tools that are called, and wants reasoning where some is said. */
  readonly turn: Turn;
  readonly reasoning: readonly string[];
  /** The answer's text, in the pieces in which it is said. */
  readonly pieces: readonly string[];
  /** Calls of one answer, side by side. */
  readonly calls: readonly SaidCall[];
  readonly usage: Usage;
  readonly finish: Finish;
  readonly failure: SaidFailure | undefined;
  /** How often the piece of a flood is said at most. */
  readonly times: number;
  /** Resolves when so many pieces have been heard; for "drip". */
  heard(pieces: number): Promise<void>;
}

export interface SaidCall {
  readonly callId: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

export interface SaidFailure {
  /** What an HTTP server would answer with, before its first word. */
  readonly status: number;
  readonly message: string;
  /** What the adapter must make of it. */
  readonly code: ErrorCode;
}

export interface Scene {
  readonly adapter: Adapter;
  /** Resolves when the other side has seen the adapter let go: socket closed, child gone, iterator ended. */
  readonly gone: Promise<void>;
  /** For "hang", when the pieces cannot be said before it: resolves when the silence has begun. */
  readonly hanging?: Promise<void> | undefined;
  /** For "flood": how many pieces the other side could push so far. */
  pushed(): number;
  close(): Promise<void>;
}

/** What an adapter honestly cannot do. */
export interface Abilities {
  readonly reasoning?: false;
  readonly tools?: false;
  /** Its other side names no calls; the core gives them ids. */
  readonly callIds?: false;
  /** Its other side does not count cached and reasoning tokens. */
  readonly tokenDetails?: false;
  /** Its other side cannot say that a failure is a rate limit: any failure is an `adapter_error`. */
  readonly rateLimits?: false;
  readonly backPressure?: false;
}

type Open = (scenario: Scenario, said: Said) => Promise<Scene>;

export function adapterContract(name: string, open: Open, abilities: Abilities = {}): void {
  const can = (ability: keyof Abilities) => abilities[ability] !== false;

  function it(
    scenario: Scenario,
    sentence: string,
    run: (hearing: Delivery) => Promise<void>,
    changes?: Changes,
  ): void {
    test(sentence, { timeout: 20_000 }, async () => {
      const { said, hear } = createSaid(scenario, changes);
      const scene = await open(scenario, said);
      const caller = new AbortController();
      const stream = scene.adapter.stream(said.turn, caller.signal)[Symbol.asyncIterator]();
      const hearing: Delivery = {
        said,
        scene,
        caller,
        deltas: [],
        characters: 0,
        async next() {
          const result = await stream.next();
          if (result.done === true) return undefined;
          hearing.deltas.push(...result.value);
          hearing.characters += textOf(result.value).length;
          hear(hearing.characters);
          return result.value;
        },
      };
      try {
        await run(hearing);
      } finally {
        caller.abort();
        await scene.close();
      }
    });
  }

  describe(`the ${name} adapter`, { concurrency: false }, () => {
    it("text", "tells a text in order and whole", tellsText);

    it("text", "tells the same when the answer is not streamed", tellsText, { stream: false });

    if (can("tools")) {
      it("parallel-tools", "tells calls that stand side by side with ids, names and arguments", async (hearing) => {
        await drain(hearing);
        const calls = callsOf(hearing.deltas);
        const expected = can("callIds")
          ? hearing.said.calls
          : hearing.said.calls.map((call) => ({ ...call, callId: undefined }));
        assert.deepEqual(calls, expected);
        assert.equal(finishOf(hearing.deltas) ?? "tool-calls", "tool-calls");
      });
    }

    if (can("reasoning")) {
      it("reasoning", "tells what was thought before what was said", async (hearing) => {
        await drain(hearing);
        const types = hearing.deltas.map((delta) => delta.type);
        assert.equal(reasoningOf(hearing.deltas), hearing.said.reasoning.join(""));
        assert.equal(textOf(hearing.deltas), hearing.said.pieces.join(""));
        assert.ok(types.lastIndexOf("reasoning") < types.indexOf("text"), types.join(" "));
      });
    }

    it("usage", "tells what the answer cost", async (hearing) => {
      await drain(hearing);
      const usage = hearing.deltas.findLast((delta) => delta.type === "usage")?.usage;
      const none = { cachedTokens: 0, reasoningTokens: 0 };
      assert.deepEqual(usage, can("tokenDetails") ? hearing.said.usage : { ...hearing.said.usage, ...none });
    });

    it("length", "tells that the answer was cut off at its limit", async (hearing) => {
      await drain(hearing);
      assert.equal(textOf(hearing.deltas), hearing.said.pieces.join(""));
      assert.equal(finishOf(hearing.deltas), "length");
    });

    it("error-before", "throws a failure that comes before the first word, with its meaning", async (hearing) => {
      const code = can("rateLimits") ? hearing.said.failure?.code : "adapter_error";
      await assert.rejects(drain(hearing), failsWith(code));
      assert.deepEqual(hearing.deltas, []);
    });

    it("error-after", "tells what was said before a failure, and then throws it", async (hearing) => {
      await assert.rejects(drain(hearing), failsWith(hearing.said.failure?.code));
      assert.equal(textOf(hearing.deltas), hearing.said.pieces.join(""));
    });

    it("hang", "lets go within 100 ms of an abort, and ends by throwing", async (hearing) => {
      const { scene, said, caller } = hearing;
      const silent = withResolvers();
      const ended = assert.rejects(
        drain(hearing, () => {
          if (textOf(hearing.deltas) === said.pieces.join("")) silent.resolve();
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

    it("drip", "tells every piece as it comes", async (hearing) => {
      const told: string[] = [];
      await drain(hearing, (batch) => void told.push(textOf(batch)));
      assert.deepEqual(
        told.filter((text) => text !== ""),
        hearing.said.pieces,
      );
    });

    if (can("backPressure")) {
      it("flood", "makes the other side wait for a reader that does not read", async (hearing) => {
        const { scene, said, caller } = hearing;
        const [piece = ""] = said.pieces;
        while (hearing.characters === 0) assert.ok(await hearing.next(), "It ended before its first word.");
        const stalled = await settled(() => scene.pushed());
        assert.ok(stalled < said.times, `All ${stalled} pieces were pushed though nobody read them.`);
        while (hearing.characters <= stalled * piece.length) {
          assert.ok(await hearing.next(), "It ended when the reader went on.");
        }
        assert.ok(scene.pushed() > stalled, "The other side did not go on with the reader.");
        caller.abort();
        await assert.rejects(drain(hearing), failsWith("client_closed"));
        await scene.gone;
      });
    }
  });
}

interface Delivery {
  readonly said: Said;
  readonly scene: Scene;
  readonly caller: AbortController;
  /** All that was told so far. */
  readonly deltas: Delta[];
  /** How long the text is that was told so far. */
  characters: number;
  next(): Promise<readonly Delta[] | undefined>;
}

async function tellsText(hearing: Delivery): Promise<void> {
  await drain(hearing);
  assert.equal(textOf(hearing.deltas), hearing.said.pieces.join(""));
  assert.equal(finishOf(hearing.deltas) ?? "stop", "stop");
}

async function drain(hearing: Delivery, each: (batch: readonly Delta[]) => void = () => {}): Promise<void> {
  for (let batch = await hearing.next(); batch !== undefined; batch = await hearing.next()) each(batch);
}

/** The value that a count stops at: only time can show that nothing more happens. */
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
      assert.ok(!calls.has(delta.index), `Two calls have the number ${delta.index}.`);
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

/** `hear` is told how many characters were heard, and wakes who waits for that. */
function createSaid(scenario: Scenario, changes: Changes = { stream: true }) {
  const waiting: { readonly characters: number; resolve(): void }[] = [];
  let heardCharacters = 0;
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
    heard(count) {
      const characters = pieces.slice(0, count).join("").length;
      if (heardCharacters >= characters) return Promise.resolve();
      const { promise, resolve } = withResolvers();
      waiting.push({ characters, resolve });
      return promise;
    },
  };
  function hear(characters: number): void {
    heardCharacters = characters;
    for (const { resolve } of waiting.filter((one) => one.characters <= characters)) resolve();
  }
  return { said, hear };
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
