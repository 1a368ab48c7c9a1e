/** The command adapter with real programs: what they receive, and what they may write. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { adapterOptions } from "../../src/adapters/index.ts";
import { createCommand } from "./made.ts";
import { createReplyReader } from "../../src/adapters/command/reply.ts";
import type { Delta } from "../../src/core/delta.ts";
import type { GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import type { Remark } from "../../src/core/ports.ts";
import type { Turn } from "../../src/core/turn.ts";
import { problemsOf, withHttp } from "../config/surroundings.ts";
import { makeFolder } from "../gateway.ts";
import { answerOf, collect, environment, failureOf, type Options, textOf, turnOf } from "./command-scene.ts";

function causeOf(failure: GatewayError): string {
  return failure.cause instanceof Error ? failure.cause.message : "";
}

test("what a program prints is the answer, without trailing line breaks", async () => {
  assert.equal(textOf(await answerOf("echo one; echo; echo two; echo; echo")), "one\n\ntwo");
});

test("a program that prints nothing gives an empty answer", async () => {
  assert.deepEqual(await answerOf("exit 0"), []);
});

test("output whose first line is a delta is read as JSON Lines", async () => {
  const lines = [
    { type: "reasoning", text: "hm" },
    { type: "tool-call", name: "look", arguments: { at: "sky" } },
    { type: "tool-call", name: "listen", call_id: "call_2" },
    { type: "tool-arguments", text: "{}" },
    { type: "tool-call", name: "say", kind: "custom", index: 7, arguments: "hello" },
    { type: "tool-arguments", text: " you" },
    { type: "tool-arguments", text: " ", index: 1 },
    { type: "usage", input_tokens: 3, output_tokens: 2 },
    { type: "usage", cached_tokens: null },
    { type: "finish" },
    { type: "finish", reason: "tool-calls" },
  ];
  const script = `cat <<'END'\n${lines.map((line) => JSON.stringify(line)).join("\n\n")}\nEND`;
  assert.deepEqual(await answerOf(script), [
    { type: "reasoning", text: "hm", summary: undefined },
    { type: "tool-call", index: 0, callId: undefined, name: "look", kind: undefined },
    { type: "tool-arguments", index: 0, text: '{"at":"sky"}' },
    { type: "tool-call", index: 1, callId: "call_2", name: "listen", kind: undefined },
    { type: "tool-arguments", index: 1, text: "{}" },
    { type: "tool-call", index: 7, callId: undefined, name: "say", kind: "custom" },
    { type: "tool-arguments", index: 7, text: "hello" },
    { type: "tool-arguments", index: 7, text: " you" },
    { type: "tool-arguments", index: 1, text: " " },
    { type: "usage", usage: { inputTokens: 3, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0 } },
    { type: "usage", usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 } },
    { type: "finish", reason: "stop" },
    { type: "finish", reason: "tool-calls" },
  ]);
});

test("JSON that is not a delta is an answer in text", async () => {
  for (const json of ['{"weather":"fine"}', '{\n  "type": "text"\n}', '{"type":"banana"}']) {
    assert.equal(textOf(await answerOf(`printf '%s\\n' '${json}'`)), json);
  }
});

test("a delta is read as text when the output is configured as text", async () => {
  const line = '{"type":"text","text":"x"}';
  assert.equal(textOf(await answerOf(`echo '${line}'`, "Hello", { output: "text" })), line);
});

test("the answer is the same wherever reads split the output", () => {
  const outputs = ["Grüße 世界 🏳️‍🌈\nend\n", '{"type":"text","text":"Grüße 世界"}\n{"type":"text","text":"🏳️‍🌈"}'];
  for (const output of outputs) {
    const bytes = Buffer.from(output);
    const said = (cuts: readonly number[]) => {
      const read = createReplyReader("auto");
      const deltas: Delta[] = [];
      const ends = [...cuts, bytes.length];
      for (const [index, end] of ends.entries()) read(bytes.subarray(ends[index - 1] ?? 0, end), deltas);
      read(undefined, deltas);
      return textOf(deltas);
    };
    const whole = said([]);
    assert.match(whole, /^Grüße 世界/);
    for (let cut = 0; cut < bytes.length; cut += 1) assert.equal(said([cut]), whole);
    assert.equal(said([...bytes.keys()]), whole);
  }
});

test("an invalid UTF-8 sequence fails the answer and is never replaced", async () => {
  for (const script of [
    String.raw`printf 'ab\342\202'`,
    String.raw`printf 'ab\377cd'`,
    String.raw`printf '{"type":"text","text":"a\377b"}\n'`,
  ]) {
    const failure = await failureOf(answerOf(script));
    assert.equal(failure.code, "adapter_protocol");
    assert.match(failure.message, /not UTF-8/);
  }
});

test("a byte order mark at the beginning is not part of the answer", async () => {
  const mark = String.raw`printf '\357\273\277'`;
  assert.equal(textOf(await answerOf(`${mark}; echo plain`)), "plain");
  assert.equal(textOf(await answerOf(`${mark}; echo '{"type":"text","text":"told"}'`)), "told");
});

test("a line that is not a delta fails the answer after the text before it, and is shown in the log only", async () => {
  const adapter = createCommand(
    { argv: ["sh", "-c", `echo '{"type":"text","text":"one"}'; echo 'Traceback: sk-1'`] },
    environment,
  );
  const emitted: Delta[] = [];
  const failure = await failureOf(
    (async () => {
      for await (const batch of adapter.stream(turnOf(""), new AbortController().signal)) emitted.push(...batch);
    })(),
  );
  assert.equal(textOf(emitted), "one");
  assert.equal(failure.code, "adapter_protocol");
  assert.doesNotMatch(failure.message, /Traceback/);
  assert.match(causeOf(failure), /Traceback: sk-1/);
});

for (const line of [
  '{"type":"text"}',
  '{"type":"text","text":5}',
  '{"type":"tool-call"}',
  '{"type":"usage","input_tokens":-1}',
  '{"type":"finish","reason":"bored"}',
  '{"type":"error"}',
  "[]",
]) {
  test(`${line} is not a delta`, async () => {
    const failure = await failureOf(answerOf(`echo '${line}'`, "Hello", { output: "jsonl" }));
    assert.equal(failure.code, "adapter_protocol");
  });
}

test("a program may report why it fails, and when to retry", async () => {
  const line = '{"type":"error","code":"adapter_rate_limit","message":"Busy.","retry_after_seconds":7}';
  const failure = await failureOf(answerOf(`echo '${line}'`));
  assert.deepEqual([failure.code, failure.message, failure.retryAfterSeconds], ["adapter_rate_limit", "Busy.", 7]);
  const later = await failureOf(answerOf(`echo '${line.replace("7", "7.5")}'`));
  assert.deepEqual([later.code, later.retryAfterSeconds], ["adapter_rate_limit", 8]);
  const long = `{"type":"error","code":"context_length_exceeded","message":"It is too long."}`;
  assert.equal((await failureOf(answerOf(`echo '${long}'`))).wireCode, "context_length_exceeded");
  const never = await failureOf(answerOf(`echo '${line.replace("7", "-7")}'`));
  assert.equal(never.code, "adapter_protocol");
});

test("an exit code other than 0 fails the answer; standard error goes to the log only", async () => {
  const failure = await failureOf(answerOf("echo partly; echo 'no such key sk-1' >&2; exit 3"));
  assert.equal(failure.code, "adapter_error");
  assert.equal(failure.message, "The adapter's program failed with exit code 3.");
  assert.ok(failure.isLasting, "it is not run twice, as it may have acted");
  assert.match(causeOf(failure), /no such key sk-1/);
});

test("the last 2 KB of standard error are kept", async () => {
  const failure = await failureOf(answerOf(`head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1`));
  assert.match(causeOf(failure), /x{2000}end$/);
  assert.ok(causeOf(failure).length < 2_200);
});

test("a program that is ended by a signal fails the answer", async () => {
  assert.match((await failureOf(answerOf("kill -SEGV $$"))).message, /was terminated by SIGSEGV/);
});

test("a program that was removed since the start is reported by its name", async (context) => {
  const folder = makeFolder(context);
  const file = join(folder, "portico-gone-program");
  writeFileSync(file, "#!/bin/sh\n", { mode: 0o755 });
  const adapter = createCommand({ argv: ["portico-gone-program"] }, { ...environment, PATH: folder });
  rmSync(file);
  const failure = await failureOf(collect(adapter, turnOf("Hello")));
  assert.equal(failure.code, "adapter_error");
  assert.match(failure.message, /portico-gone-program was not found/);
});

test("options that cannot work are refused when the adapter is created", (context) => {
  const folder = makeFolder(context);
  const make = (options: Options) => () => createCommand({ cwd: folder, ...options }, environment);
  assert.throws(make({ argv: ["/nowhere/agent"] }), /no executable program \/nowhere\/agent/);
  assert.throws(make({ argv: ["./agent"] }), /no executable program .*agent/);
  assert.throws(make({ argv: ["{model}"] }), /without placeholders/);
  assert.throws(make({ argv: ["cat"], cwd: join(folder, "nowhere") }), /no folder/);
});

test("a caller's words are arguments of a shell's script, never part of it, wherever the script is", (context) => {
  const make = (...rest: readonly string[]) => createCommand({ argv: ["/bin/sh", ...rest] }, environment);
  const options = [["-c"], ["-lc"], ["-ce"], ["-c", "-x"], ["-c", "--"], ["-euo", "pipefail", "-c"]];
  for (const given of [...options, ["-c", "-o", "pipefail"], ["-ceuo", "pipefail"], ["-c", "+e"]]) {
    assert.throws(() => make(...given, "agent '{prompt}'"), /would run a caller's words as commands/);
    assert.throws(() => make(...given, "agent '{model}'", "sh", "{prompt}"), /would run a caller's words as commands/);
    make(...given, 'agent "$1"', "sh", "{prompt}");
  }
  const odd = [["+c"], ["-coo", "errexit", "nounset"], ["-oerrexit", "-c"], ["--rcfile", "rc", "-c"]];
  for (const given of odd) {
    assert.throws(() => make(...given, "agent '{prompt}'"), /would run a caller's words as commands/);
    make(...given, 'agent "$1"', "sh", "{prompt}");
  }
  assert.throws(() => make("-co", "{prompt}"), /would run a caller's words as commands/);
  const file = join(makeFolder(context), "script.sh");
  for (const given of [[], ["-e"], ["-eo", "pipefail"], ["--"], ["--norc"]]) {
    make(...given, file, "{prompt}");
    // Options of the script, not of the shell.
    make(...given, file, "-context", "{prompt}");
    make(...given, file, "-c", "{prompt}");
  }
});

test("a program without a path is looked up on its PATH when the adapter is created", (context) => {
  const folder = makeFolder(context);
  const make = (options: Partial<Options>, path?: string) => () =>
    createCommand({ argv: ["portico-agent"], cwd: folder, ...options }, { PATH: path });
  const file = join(folder, "portico-agent");
  const paths = `/nowhere:${folder}`;
  assert.throws(make({}, paths), {
    message: `argv[0]: there is no executable program portico-agent on its PATH (${paths}). Install it, or give its path.`,
  });
  mkdirSync(file);
  assert.throws(make({}, paths), /no executable program portico-agent/);
  rmdirSync(file);
  writeFileSync(file, "#!/bin/sh\n", { mode: 0o644 });
  assert.throws(make({}, paths), /no executable program portico-agent/);
  chmodSync(file, 0o755);
  assert.doesNotThrow(make({}, paths));
  assert.doesNotThrow(make({}, ""));
  assert.doesNotThrow(make({ env: [], set_env: { PATH: "." } }, "/nowhere"));
  assert.throws(make({ set_env: { PATH: "/nowhere" } }, paths), /on its PATH \(\/nowhere\)/);
  assert.throws(make({ env: [] }, paths), /in the default folders, as it is given no PATH\. Install it/);
  assert.doesNotThrow(make({ argv: ["sh"], env: [] }));
});

test("an empty argv is a configuration problem that names its key", async () => {
  const file = withHttp({}, { adapters: { agent: { type: "command", argv: [] } } });
  assert.deepEqual(await problemsOf(file, { adapterOptions }), [
    {
      path: "gateway.adapters.agent.argv",
      message: "found an empty list; allowed: a list that is not empty",
    },
  ]);
});

test("a relative program path is resolved from the program's working folder", async (context) => {
  const folder = makeFolder(context);
  writeFileSync(join(folder, "agent"), "#!/bin/sh\necho agent in $(pwd -P | xargs basename)\n");
  chmodSync(join(folder, "agent"), 0o755);
  const adapter = createCommand({ argv: ["./agent"], cwd: folder }, environment);
  assert.match(textOf(await collect(adapter, turnOf("Hello"))), /^agent in portico-/);
});

test("arguments contain the model's name and the text unchanged, and no shell interprets them", async () => {
  const prompt = '$(rm -rf /) {model} `id` "quoted"\nnext';
  const argv = ["printf", "%s|", "--say={prompt}", "{model}", "a {model} b", "{other}"];
  const adapter = createCommand({ argv, input: "none" }, environment);
  assert.equal(textOf(await collect(adapter, turnOf(prompt))), `--say=${prompt}|model-1|a model-1 b|{other}|`);
});

test("a caller's text never becomes an option", async () => {
  const say = (argv: string[], turn: Turn) =>
    collect(createCommand({ argv: ["printf", "%s", ...argv], input: "none" }, environment), turn);
  assert.equal(textOf(await say(["{prompt}"], turnOf("--force"))), " --force");
  assert.equal(textOf(await say(["--", "{prompt}"], turnOf("--force"))), "----force");
  const failure = await failureOf(say(["{model}"], turnOf("Hello", { model: "--force" })));
  assert.equal(failure.code, "adapter_bad_request");
});

test("a text that a command line cannot hold is refused as the caller's error", async () => {
  const say = (text: string) =>
    failureOf(collect(createCommand({ argv: ["printf", "{prompt}"] }, environment), turnOf(text)));
  assert.equal((await say("a\0b")).code, "adapter_bad_request");
  assert.equal((await say("x".repeat(3_000_000))).code, "adapter_bad_request");
});

test("a program sees only the environment variables that are allowed", async () => {
  const names = async (options: Partial<Options>) =>
    textOf(await answerOf("env | cut -d= -f1 | grep -v -e PWD -e SHLVL -e '^_$' | sort", "Hello", options)).split("\n");
  assert.deepEqual(await names({}), ["HOME", "PATH"]);
  assert.deepEqual(await names({ env: ["PATH", "SECRET_KEY"], set_env: { MODE: "test" } }), [
    "MODE",
    "PATH",
    "SECRET_KEY",
  ]);
});

test("a program receives the turn as JSON on its standard input", async () => {
  const items: readonly Item[] = [
    { type: "message", role: "developer", content: "Be brief." },
    {
      type: "message",
      role: "user",
      content: [
        { type: "text", text: "What is " },
        { type: "text", text: "this?" },
        { type: "image", fileId: "file_1", detail: "low", extra: { dialect: "chat", fields: { mark: 1 } } },
        { type: "other", extra: { dialect: "chat", fields: { type: "hologram" } } },
      ],
    },
    { type: "reasoning", summary: ["hm"], text: "" },
    { type: "tool-call", kind: "function", callId: "call_1", name: "look", arguments: '{"at":"it"}' },
    { type: "tool-output", kind: "function", callId: "call_1", output: "a cat" },
    { type: "message", role: "assistant", content: [{ type: "refusal", text: "No." }] },
    { type: "message", role: "user", content: [{ type: "audio", data: "AAAA", format: "wav" }] },
  ];
  const settings: Turn["settings"] = {
    instructions: "Look.",
    tools: [
      { type: "function", name: "look", parameters: { type: "object" } },
      { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } },
    ],
    toolChoice: { type: "auto" },
    maxOutputTokens: 100,
  };
  const remarks: Remark[] = [];
  const adapter = createCommand({ argv: ["cat"], output: "text" }, environment);
  const deltas = await collect(adapter, turnOf(items, { settings }), (remark) => void remarks.push(remark));
  assert.deepEqual(JSON.parse(textOf(deltas)), {
    id: "resp_1",
    model: "model-1",
    stream: true,
    messages: [
      { role: "system", content: "Look." },
      { role: "developer", content: "Be brief." },
      { role: "user", content: "What is this?", attachments: [{ type: "image", file_id: "file_1", detail: "low" }] },
      {
        role: "assistant",
        content: "",
        tool_call: { call_id: "call_1", name: "look", kind: "function", arguments: '{"at":"it"}' },
      },
      { role: "tool", call_id: "call_1", content: "a cat" },
      { role: "assistant", content: "No." },
      { role: "user", content: "", attachments: [{ type: "audio", data: "AAAA", format: "wav" }] },
    ],
    tools: [{ type: "function", name: "look", parameters: { type: "object" } }],
    settings: { tool_choice: { type: "auto" }, max_output_tokens: 100 },
  });
  assert.deepEqual(remarks, [
    { type: "left-out", what: "content hologram" },
    { type: "left-out", what: "tool web_search" },
  ]);
});

test("a program may receive the last user message as text, or nothing", async () => {
  assert.equal(textOf(await answerOf("cat", "Hello", { input: "text" })), "Hello");
  assert.equal(textOf(await answerOf("cat", "Hello", { input: "none" })), "");
});

test("what a program does not receive is reported to the caller as left out", async () => {
  const picture = { type: "image", url: "data:image/png;base64,AAAA" } as const;
  const content = [{ type: "text", text: "What is this?" }, picture, picture] as const;
  const items: readonly Item[] = [{ type: "message", role: "user", content }];
  const tools = [{ type: "function", name: "look" }] as const;
  const settings = { tools, format: { type: "json" }, topLogprobs: 0 } as const;
  const omissionsOf = async (input: "json" | "text" | "none", asked: Turn["settings"]) => {
    const remarks: Remark[] = [];
    const adapter = createCommand({ argv: ["true"], input }, environment);
    await collect(adapter, turnOf(items, { settings: asked }), (remark) => void remarks.push(remark));
    return remarks.map((remark) => (remark.type === "left-out" ? remark.what : ""));
  };
  assert.deepEqual(await omissionsOf("json", settings), ["logprobs"]);
  const leftOut = ["logprobs", "tool look", "response format", "content image"];
  for (const input of ["text", "none"] as const) assert.deepEqual(await omissionsOf(input, settings), leftOut);
  assert.deepEqual(await omissionsOf("text", { tools: [], format: { type: "text" } }), ["content image"]);
  const required = { ...settings, toolChoice: { type: "required" } } as const;
  assert.deepEqual(await omissionsOf("json", required), ["logprobs"]);
  for (const toolChoice of [required.toolChoice, { type: "tool", name: "look" }] as const) {
    await assert.rejects(omissionsOf("text", { ...settings, toolChoice }), {
      code: "unsupported_parameter",
      param: "tool_choice",
    });
  }
});

test("a program need not read its input", async () => {
  assert.equal(textOf(await answerOf("exec <&-; echo done", "x".repeat(1_000_000))), "done");
});
