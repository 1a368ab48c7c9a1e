/** A conversation at a simulated terminal: keys go in, the output comes out. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type Conversation, converse } from "../../src/cli/chat/converse.ts";
import type { ChatBackend, Question } from "../../src/cli/chat/backend.ts";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError, toGatewayError } from "../../src/core/errors.ts";
import { frame } from "../../src/core/frame/frame.ts";

type Say = (question: Question, signal: AbortSignal) => AsyncIterable<readonly Delta[]>;

/** A backend that answers what the script emits. */
function createBackend(say: Say): ChatBackend {
  return {
    models: async () => [],
    async ask(question, signal) {
      const events = frame("resp_1", say(question, signal), {
        async settle() {},
        explain: (thrown) => toGatewayError(signal.aborted ? signal.reason : thrown),
        end() {},
        now: () => new Date(),
      });
      return { history: undefined, sessionId: undefined, events };
    },
    async close() {},
  };
}

interface Talk {
  /** What is typed, or piped. */
  readonly keys: PassThrough;
  readonly output: PassThrough;
  readonly complaints: string[];
  readonly stop: () => void;
  readonly failures: Promise<number>;
  /** Resolves when this text was written to the output, or as a complaint. */
  seen(part: string): Promise<void>;
}

type More = Partial<Pick<Conversation, "isInteractive" | "isSimple" | "showsHistory" | "showsWaiting">>;

function begin(say: Say, more: More = {}): Talk {
  const keys = new PassThrough();
  const output = new PassThrough();
  const complaints: string[] = [];
  const stopped = new AbortController();
  let written = "";
  let wake = (): void => {};
  output.on("data", (piece: Buffer) => {
    written += piece.toString("utf8");
    wake();
  });
  const failures = converse(createBackend(say), {
    input: keys,
    output,
    isInteractive: false,
    complain(line) {
      complaints.push(line);
      wake();
    },
    session: "terminal",
    model: "echo",
    showsHistory: false,
    stopped: stopped.signal,
    ...more,
  });
  async function seen(part: string): Promise<void> {
    while (!written.includes(part) && !complaints.some((line) => line.includes(part)))
      await new Promise<void>((resolve) => (wake = resolve));
  }
  return { keys, output, complaints, stop: () => stopped.abort(), failures, seen };
}

/** Everything that is written for lines from a pipe. */
async function pipe(lines: string, say: Say, more?: { showsHistory?: boolean }) {
  const { keys, output, complaints, failures } = begin(say, more);
  const written = text(output);
  keys.end(lines);
  const failed = await failures;
  output.end();
  return { written: await written, complaints, failed };
}

const repeat: Say = async function* ({ messages }) {
  yield [{ type: "text", text: `you said ${messages.at(-1)!.content}` }];
};

const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

test("Every line of a pipe is answered on a line of its own; empty ones are skipped.", async () => {
  const { written, complaints, failed } = await pipe("one\n\n  \ntwo", repeat);
  assert.equal(written, "you said one\nyou said two\n");
  assert.deepEqual([complaints, failed], [[], 0]);
});

test("A message keeps its blanks, which have a meaning in code.", async () => {
  const { written } = await pipe("    return 1  \n", repeat);
  assert.equal(written, "you said     return 1  \n");
});

test("What looks like a command but is none is not sent, unless it begins with a blank.", async () => {
  const { written, complaints, failed } = await pipe(
    "/EXIT\n/model gpt\n/help \n /exit\n/etc/hosts is what?\n",
    repeat,
  );
  assert.equal(written, "you said  /exit\nyou said /etc/hosts is what?\n");
  const [first, second, ...rest] = complaints;
  assert.match(first!, /^Not sent: there is no such command\. .* \/new begins another conversation/);
  assert.equal(second, first);
  assert.deepEqual([rest.length, failed], [1, 2]);
});

test("An answer is printed as it arrives.", async () => {
  const first = Promise.withResolvers<void>();
  const { keys, failures, seen } = begin(async function* () {
    yield [{ type: "text", text: "half" }];
    await first.promise;
    yield [{ type: "text", text: " and half" }];
  });
  keys.end("hello\n");
  await seen("half");
  first.resolve();
  await seen("half and half\n");
  assert.equal(await failures, 0);
});

test("/help lists the commands, and is not sent as a message.", async () => {
  const { written, complaints } = await pipe("/help\n", repeat);
  assert.equal(written, "");
  assert.match(complaints.join(), /\/new begins another conversation, \/exit/);
});

test("/new continues in another session, /exit ends.", async () => {
  const sessions: string[] = [];
  const { complaints } = await pipe("one\n/new\ntwo\nthree\n/new\nfour\n/exit\nfive\n", async function* ({ session }) {
    sessions.push(session);
  });
  const [first, second, third, fourth, ...rest] = sessions;
  assert.equal(first, "terminal");
  assert.match(second!, /^terminal-[0-9a-f]{8}$/);
  assert.equal(third, second);
  assert.match(fourth!, /^terminal-[0-9a-f]{8}$/);
  assert.notEqual(fourth, second);
  assert.deepEqual(rest, []);
  assert.deepEqual(complaints, [`A new conversation: session ${second}`, `A new conversation: session ${fourth}`]);
});

test("A gateway with sessions is sent only what is new; one without is sent the whole conversation.", async () => {
  const asked: Question[] = [];
  const say: Say = (question, signal) => {
    asked.push(question);
    return repeat(question, signal);
  };
  await pipe("one\ntwo\n", say);
  assert.deepEqual(
    asked.splice(0).map(({ messages }) => messages.map(({ content }) => content)),
    [["one"], ["two"]],
  );
  await pipe("one\ntwo\n/new\nthree\n", say, { showsHistory: true });
  assert.deepEqual(
    asked.map(({ messages }) => messages.map(({ role, content }) => `${role}: ${content}`)),
    [["user: one"], ["user: one", "assistant: you said one", "user: two"], ["user: three"]],
  );
});

test("A failure is printed on one line, before or after the first word, and the conversation continues.", async () => {
  const { written, complaints, failed } = await pipe("before\nafter\nwell\n", async function* (question, signal) {
    const { content } = question.messages.at(-1)!;
    if (content === "after") yield [{ type: "text", text: "so far" }];
    if (content !== "well") throw new GatewayError("adapter_error", `It broke\n${content} it was done.`);
    yield* repeat(question, signal);
  });
  assert.equal(written, "so far\nyou said well\n");
  assert.deepEqual(complaints, ["It broke before it was done.", "It broke after it was done."]);
  assert.equal(failed, 2);
});

test("Tool calls and refusals are printed, reasoning is not, and a cut-off answer is reported.", async () => {
  const { written, complaints } = await pipe("go\n", async function* () {
    yield [
      { type: "reasoning", text: "let me think" },
      { type: "text", text: "Looking." },
      { type: "tool-call", index: 0, name: "search" },
      { type: "tool-arguments", index: 0, text: '{"for":\n"shade"}' },
      { type: "refusal", text: "No." },
      { type: "finish", reason: "length" },
    ];
  });
  assert.equal(written, 'Looking.\n[calls search {"for": "shade"}]\nNo.\n');
  assert.deepEqual(complaints, ["[the answer was cut short: length]"]);
});

test("A session that is deleted meanwhile begins anew, without what was said before.", async () => {
  const input = new PassThrough();
  const [asked, complaints]: [Question[], string[]] = [[], []];
  const places = [
    { history: "new", sessionId: "sess_1" },
    { history: "new", sessionId: "sess_2" },
    { history: "continued", sessionId: "sess_2" },
  ];
  const backend = createBackend(repeat);
  const placing: ChatBackend = {
    ...backend,
    async ask(question, signal) {
      const place = places[asked.push(question) - 1]!;
      return { ...(await backend.ask(question, signal)), ...place };
    },
  };
  const complain = (line: string) => void complaints.push(line);
  const talk = { input, output: new PassThrough(), isInteractive: false, complain };
  const stopped = new AbortController().signal;
  input.end("one\ntwo\nthree\n");
  await converse(placing, { ...talk, session: "s", model: "m", showsHistory: false, stopped });
  assert.deepEqual(
    asked.map(({ messages }) => messages.map(({ content }) => content)),
    [["one"], ["two"], ["three"]],
  );
  assert.deepEqual(complaints, ["[the session is gone: this begins it anew, without what was said before]"]);
});

test("A terminal shows a sign until the first word, or the failure.", async () => {
  const thinking: string[] = [];
  const { keys, output, complaints, failures } = begin(
    async function* (question, signal) {
      yield [{ type: "reasoning", text: "let me think" }];
      await setImmediate();
      thinking.push(written);
      if (question.messages.at(-1)!.content === "fail") throw new GatewayError("adapter_error", "It broke.");
      yield* repeat(question, signal);
    },
    { showsWaiting: true },
  );
  let written = "";
  output.on("data", (piece: Buffer) => (written += piece.toString("utf8")));
  keys.end("one\nfail\n");
  assert.equal(await failures, 1);
  const answered = "…\r\x1b[Kyou said one\n";
  assert.deepEqual([...thinking, written], ["…", `${answered}…`, `${answered}…\r\x1b[K`]);
  assert.deepEqual(complaints, ["It broke."]);
});

test("Control characters are printed escaped.", async () => {
  const { written } = await pipe("go\n", async function* () {
    yield [{ type: "text", text: "\x1b[2Jgone\x07\n" }];
    yield [{ type: "text", text: "\r" }];
  });
  assert.equal(written, "\\x1b[2Jgone\\x07\n");
});

test("A reader that is slower than the model is waited for.", async () => {
  const input = new PassThrough();
  const output = new PassThrough({ highWaterMark: 1 });
  let pulled = 0;
  const backend = createBackend(async function* () {
    for (const text of ["one, ", "two"]) {
      pulled += 1;
      yield [{ type: "text", text }];
    }
  });
  const talk = { input, output, isInteractive: false, complain() {}, session: "s", model: "m", showsHistory: false };
  const failures = converse(backend, { ...talk, stopped: new AbortController().signal });
  input.end("go\n");
  await once(output, "readable");
  await setImmediate();
  assert.equal(pulled, 1);
  const written = text(output);
  assert.equal(await failures, 0);
  output.end();
  assert.equal(await written, "one, two\n");
});

test("Ctrl-C stops the answer and cancels the turn; the next line is answered.", async () => {
  const signals: AbortSignal[] = [];
  const { keys, failures, seen, complaints } = begin(
    async function* (question, signal) {
      signals.push(signal);
      if (question.messages.at(-1)!.content === "again") return yield* repeat(question, signal);
      yield [{ type: "text", text: "a long st" }];
      await never(signal);
    },
    { isInteractive: true },
  );
  await seen("> ");
  keys.write("tell\r");
  await seen("a long st");
  keys.write("\x03");
  await seen("[stopped]");
  keys.write("again\r");
  await seen("you said again\n");
  keys.write("\x04");
  assert.equal(await failures, 0);
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true, false],
  );
  assert.equal(complaints.length, 1);
});

/** Talks at a terminal, a step after the other has been seen, and quits; returns what was asked. */
async function type(...steps: readonly (readonly [keys: string, seen: string])[]): Promise<readonly string[]> {
  const asked: string[] = [];
  const { keys, failures, seen } = begin(
    async function* (question, signal) {
      const { content } = question.messages.at(-1)!;
      asked.push(content);
      yield* repeat(question, signal);
      if (content === "wait") await never(signal);
    },
    { isInteractive: true },
  );
  await seen("> ");
  for (const [pressed, shown] of steps) {
    keys.write(pressed);
    await seen(shown);
  }
  keys.write("\x04");
  assert.equal(await failures, 0);
  return asked;
}

test("What is pasted is one message, with what was typed before it, and is sent by Enter.", async () => {
  const paste = "\x1b[200~def one():\r\n    return 1\n\n/exit\r\x1b[201~";
  assert.deepEqual(await type([`Explain: ${paste}`, "/exit"], ["\r", "/exit\n"], ["next\r", "you said next\n"]), [
    "Explain: def one():\n    return 1\n\n/exit\n",
    "next",
  ]);
});

test("Alt-Enter begins another line of a message.", async () => {
  assert.deepEqual(await type(["one\x1b\rtwo\r", "you said one\ntwo\n"]), ["one\ntwo"]);
});

test("Ctrl-C clears what is typed or pasted, before it quits.", async () => {
  const cleared = "\x1b[1G\x1b[0J> \x1b[3G";
  assert.deepEqual(
    await type(
      ["half", "half"],
      ["\x03", `half${cleared}`],
      ["\x1b[200~one\rtwo\x1b[201~", "two"],
      ["\x03", `two${cleared}`],
      ["whole\r", "you said whole\n"],
    ),
    ["whole"],
  );
});

test("Ctrl-C during an answer drops the lines typed ahead, too.", async () => {
  assert.deepEqual(
    await type(
      ["wait\r", "you said wait"],
      ["two\rthree\rfo", "fo"],
      ["\x03", "[stopped]"],
      ["five\r", "you said five\n"],
    ),
    ["wait", "five"],
  );
});

test("What Ctrl-C has dropped is no part of what is typed before the answer has stopped.", async () => {
  assert.deepEqual(await type(["wait\r", "you said wait"], ["half", "half"], ["\x03five\r", "you said five\n"]), [
    "wait",
    "five",
  ]);
});

test("At a terminal that can erase nothing, Ctrl-C clears what is typed, and Alt-Enter is Enter.", async (context) => {
  // Where readline finds it.
  const { TERM } = process.env;
  process.env["TERM"] = "dumb";
  context.after(() => (TERM === undefined ? delete process.env["TERM"] : (process.env["TERM"] = TERM)));
  const { keys, failures, seen } = begin(repeat, { isInteractive: true, isSimple: true });
  keys.write("half");
  await seen("> half");
  keys.write("\x03one\x1b\r");
  await seen("half\n> one\r\nyou said one\n> ");
  keys.write("two\r");
  await seen("you said two\n> ");
  keys.write("\x03");
  assert.equal(await failures, 0);
});

test("Keys behind the one that quits are ignored.", async () => {
  const { keys, failures, seen } = begin(repeat, { isInteractive: true });
  await seen("> ");
  keys.write("\x04\x1b\r");
  assert.equal(await failures, 0);
});

test("A line typed ahead is shown again above its answer.", async () => {
  const first = Promise.withResolvers<void>();
  const { keys, failures, seen } = begin(
    async function* (question, signal) {
      yield* repeat(question, signal);
      await first.promise;
    },
    { isInteractive: true },
  );
  keys.write("one\r");
  await seen("you said one");
  keys.write("two\r");
  await seen("two");
  first.resolve();
  await seen("you said onetwo\r\n\n> two\nyou said two\n");
  keys.write("\x04");
  assert.equal(await failures, 0);
});

for (const [name, key, end] of [
  ["Ctrl-C at an empty prompt", "\x03", "\n"],
  ["Ctrl-D", "\x04", "\n"],
  ["/exit", "/exit\r", "/exit\r\n"],
] as const) {
  test(`${name} ends the conversation, and the output with a line.`, async () => {
    const { keys, output, failures, seen } = begin(repeat, { isInteractive: true });
    const written = text(output);
    await seen("> ");
    keys.write("one\r");
    const prompt = "\x1b[1G\x1b[0J> \x1b[3G";
    await seen(`you said one\n${prompt}`);
    keys.write(key);
    assert.equal(await failures, 0);
    output.end();
    assert.ok((await written).endsWith(prompt + end));
  });
}

test("Stopping the process stops the answer, and no more lines are answered.", async () => {
  const { keys, failures, seen, stop } = begin(async function* (_question, signal) {
    yield [{ type: "text", text: "a long st" }];
    await never(signal);
  });
  keys.write("one\ntwo\n");
  await seen("a long st");
  stop();
  assert.equal(await failures, 0);
});

test("Stopping the process ends a conversation that waits for a line.", async () => {
  const { failures, seen, stop } = begin(repeat, { isInteractive: true });
  await seen("> ");
  stop();
  assert.equal(await failures, 0);
});

test("A conversation that was stopped before it began ends at once.", async () => {
  const backend = createBackend(() => assert.fail("nothing may be asked"));
  const [input, output] = [new PassThrough(), new PassThrough()];
  const talk = { input, output, isInteractive: false, complain() {}, session: "s", model: "m", showsHistory: false };
  assert.equal(await converse(backend, { ...talk, stopped: AbortSignal.abort() }), 0);
});
