/** The command adapter with real programs: what they read and may write, their arguments and their environment. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { type Heard, tell, type Wish } from "../harness/client.ts";
import type { WireResponse } from "../harness/grammar.ts";
import { makeFolder, openGateway } from "../harness/house.ts";
import { byName, share, whyNot } from "./scene.ts";

const env = { PATH: process.env["PATH"], HOME: "/home/portico", PORTICO_TEST_KEY: "sk-secret" };
// The programs' variables are those of the gateway's process.
Object.assign(process.env, { PORTICO_TEST_KEY: env.PORTICO_TEST_KEY });
const sh = (script: string, more: object = {}) => ({ argv: ["sh", "-c", script], ...more });
const print = (...lines: readonly (object | string)[]) => {
  const text = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
  return sh(`cat <<'END'\n${text}\nEND`, { output: "jsonl" });
};
const word = { type: "text", text: "Hi" };

const plain = (...argv: string[]) => ({ argv, input: "none" });
const quoted = '$(id) {model} `id` "q"\nnext';
const variables = sh("env | cut -d= -f1 | grep -E '^(HOME|PATH|PORTICO_TEST_KEY)$' | sort");
const chosen = { env: ["PATH", "PORTICO_TEST_KEY"], set_env: { MODE: "test" } };

/** What each program's caller hears. */
const answers: Readonly<Record<string, readonly [settings: object, text: string, say?: string]>> = {
  "the answer has no trailing line breaks": [sh("echo one; echo; echo two; echo; echo"), "one\n\ntwo"],
  "a program that prints nothing gives an empty answer": [sh("exit 0"), ""],
  "output: jsonl reads deltas, and empty lines are none": [print(word, "", { ...word, text: " there" }), "Hi there"],
  "output: text takes a delta as text": [{ ...print(word), output: "text" }, JSON.stringify(word)],
  "a character may come in two writes": [sh(String.raw`printf 'gr\303'; sleep 0.05; printf '\274n'`), "grün"],
  "input: text is the last user message": [sh("cat", { input: "text" }), "Hello", "Hello"],
  "input: none is an empty input": [sh("cat; echo nothing", { input: "none" }), "nothing"],
  "a program need not read its input": [sh("exec <&-; echo done"), "done", "x".repeat(1_000_000)],
  "no shell interprets the text": [plain("printf", "%s|", "-s={prompt}", "{other}"), `-s=${quoted}|{other}|`, quoted],
  "a text that would be an option gets a blank": [plain("printf", "%s", "{prompt}"), " --force", "--force"],
  "behind -- no text gets a blank": [plain("printf", "%s", "--", "{prompt}"), "----force", "--force"],
  "a script's argument is no script": [plain("sh", "-c", 'printf "%s" "$1"', "sh", "{prompt}"), "'; id; '", "'; id; '"],
  "only a few variables of the environment are passed on": [variables, "HOME\nPATH"],
  "env and set_env choose the variables": [sh("echo $PORTICO_TEST_KEY $MODE $HOME", chosen), "sk-secret test"],
  "a relative program path starts at cwd": [{ argv: ["./agent"], cwd: "tools" }, "agent in tools"],
};

type Failure = readonly [settings: object, status: number, code: string, why: RegExp, say?: string];
const protocol = (settings: object, why = /./): Failure => [settings, 502, "adapter_protocol", why];
const report = (fields: object) => print({ type: "error", message: "Busy.", ...fields });
const limited = report({ code: "adapter_rate_limit", retry_after_seconds: 7 });
const tooLong = report({ code: "context_length_exceeded" });
const lines =
  '{"type":"text"} {"type":"text","text":5} {"type":"tool-call"} {"type":"finish","reason":"bored"} [] Traceback';

/** How each program fails. */
const failures: Readonly<Record<string, Failure>> = {
  "an exit code other than 0": [sh("echo 'no such key sk-1' >&2; exit 3"), 502, "adapter_error", /exit code 3/],
  "a program that does not exist": [{ argv: ["no-such-agent"] }, 502, "adapter_error", /no-such-agent.*ENOENT/],
  "a folder that does not exist": [{ argv: ["cat"], cwd: "nowhere" }, 502, "adapter_error", /could not be started/],
  "an end by a signal": [sh("kill -SEGV $$"), 502, "adapter_error", /SIGSEGV/],
  "text that is cut within a character": protocol(sh(String.raw`printf 'ab\342\202'`), /UTF-8/),
  "bytes that are not UTF-8": protocol(sh(String.raw`printf '\377'`), /UTF-8/),
  "a reported rate limit": [limited, 429, "adapter_rate_limit", /^Busy\.$/],
  "a reported failure without a code": [report({}), 502, "adapter_error", /^Busy\.$/],
  "a conversation that is too long": [tooLong, 400, "context_length_exceeded", /Busy/],
  "a text that no argument can hold": [{ argv: ["printf", "{prompt}"] }, 502, "adapter_error", /./, "a\0b"],
  ...Object.fromEntries(lines.split(" ").map((line) => [`the line ${line}`, protocol(print(line))])),
};

/** Others, that tests call by name. */
const programs = {
  shown: sh("cat"),
  text: sh("cat", { input: "text" }),
  model: { argv: ["printf", "%s", "{model}"], input: "none" },
  late: print({ type: "text", text: "one" }, "Traceback: sk-1"),
  calls: print(
    { type: "reasoning", text: "hm" },
    { type: "tool-call", name: "look", arguments: { at: "sky" } },
    { type: "tool-call", name: "listen", call_id: "call_2" },
    { type: "tool-arguments", text: "{}" },
    { type: "usage", input_tokens: 3, output_tokens: 2 },
    { type: "finish", reason: "tool-calls" },
  ),
};

const open = share(async (scope) => {
  const settings = Object.entries({ ...answers, ...failures }).map(([name, [one]]) => [name, one] as const);
  const all = [...settings, ...Object.entries(programs)].map(
    ([name, one]) => [name, { type: "command", retries: 0, ...one }] as const,
  );
  const folder = makeFolder(scope);
  mkdirSync(join(folder, "tools"));
  writeFileSync(join(folder, "tools/agent"), "#!/bin/sh\necho agent in $(basename $(pwd -P))\n");
  chmodSync(join(folder, "tools/agent"), 0o755);
  const names = all.map(([name]) => name);
  return openGateway(scope, { folder, env, gateway: { adapters: Object.fromEntries(all), ...byName(names) } });
});

async function ask(model: string, { more, ...wish }: Partial<Wish> = {}): Promise<Heard> {
  const { address } = await open();
  return tell(address, { on: "chat", say: "Hello", ...wish, more: { model, ...more } });
}

for (const [name, [, text, say = "Hello"]] of Object.entries(answers)) {
  test(name, async () => {
    const { raw, text: heard } = await ask(name, { say, stream: true });
    assert.equal(heard, text, raw);
  });
}

for (const [name, [, status, code, why, say = "Hello"]] of Object.entries(failures)) {
  test(`${name} fails the turn`, async () => {
    const heard = await ask(name, { say });
    assert.deepEqual([heard.status, heard.error?.["code"]], [status, code], heard.raw);
    assert.match(String(heard.error?.["message"]), why);
    assert.doesNotMatch(heard.raw, /sk-1/);
    if (code === "adapter_rate_limit") assert.equal(heard.headers.get("retry-after"), "7");
  });
}

test("what a failed program wrote on standard error, and a line that is no delta, are in the log only", async () => {
  const { logged } = await open();
  await ask("an exit code other than 0");
  const heard = await ask("late", { stream: true });
  assert.deepEqual([heard.text, heard.error?.["code"]], ["one", "adapter_protocol"]);
  assert.doesNotMatch(heard.raw, /Traceback|sk-1/);
  const log = inspect(logged, { depth: Infinity, maxArrayLength: null });
  assert.match(log, /no such key sk-1/);
  assert.match(log, /Traceback: sk-1/);
});

test("reasoning, calls without ids or arguments, usage and the reason of the end reach the caller", async () => {
  const tools = ["look", "listen"].map((name) => ({ type: "function", name, parameters: { type: "object" } }));
  const { raw, calls } = await ask("calls", { on: "responses", more: { tools } });
  const written = calls.map(({ name, arguments: text }) => `${name} ${text}`);
  assert.deepEqual(written, ['look {"at":"sky"}', "listen {}"]);
  assert.equal(calls[1]?.id, "call_2");
  assert.ok(calls[0]?.id);
  const { output, usage } = JSON.parse(raw) as WireResponse;
  assert.equal(output[0]?.type, "reasoning");
  assert.equal((usage as { total_tokens: number }).total_tokens, 5);
});

const image = { type: "input_image", image_url: "data:image/png;base64,iVBORw==", detail: "low" };
const look = { type: "function", name: "look", parameters: { type: "object" } };

test("a program reads the turn as one JSON document", async () => {
  const say = [
    { role: "developer", content: "Be brief." },
    { role: "user", content: [{ type: "input_text", text: "What is " }, { type: "input_text", text: "this?" }, image] },
    { type: "function_call", call_id: "call_1", name: "look", arguments: '{"at":"it"}' },
    { type: "function_call_output", call_id: "call_1", output: "a cat" },
    { role: "assistant", content: "A cat." },
    { role: "user", content: "Sure?" },
  ];
  const asked = { temperature: 0.5, max_output_tokens: 100 };
  const more = { ...asked, instructions: "Look.", tools: [look, { type: "web_search" }] };
  const { text, id, headers } = await ask("shown", { on: "responses", say, stream: true, more });
  const { settings, tools, ...turn } = JSON.parse(text);
  const picture = { type: "image", url: image.image_url, detail: "low" };
  const called = { call_id: "call_1", name: "look", kind: "function", arguments: '{"at":"it"}' };
  assert.deepEqual(turn, {
    id,
    model: "shown",
    stream: true,
    messages: [
      { role: "system", content: "Look." },
      { role: "developer", content: "Be brief." },
      { role: "user", content: "What is this?", attachments: [picture] },
      { role: "assistant", content: "", tool_call: called },
      { role: "tool", call_id: "call_1", content: "a cat" },
      { role: "assistant", content: "A cat." },
      { role: "user", content: "Sure?" },
    ],
  });
  assert.deepEqual({ ...settings, ...asked }, settings);
  assert.deepEqual([tools.length, tools[0].type, tools[0].name], [1, "function", "look"]);
  assert.match(String(headers.get("x-portico-warning")), /web_search left out/);
});

test("what a program gets no document for is reported as left out, and a demand for a call refused", async () => {
  const say = [{ role: "user", content: [{ type: "input_text", text: "What is this?" }, image] }];
  const more = { tools: [look], text: { format: { type: "json_object" } } };
  const { text, headers } = await ask("text", { on: "responses", say, more });
  assert.equal(text, "What is this?");
  for (const what of [/tool look/, /response format/, /image/])
    assert.match(String(headers.get("x-portico-warning")), what);
  const refused = await ask("text", { on: "responses", say, more: { ...more, tool_choice: "required" } });
  assert.deepEqual([refused.status, refused.error?.["param"]], [400, "tool_choice"]);
});

test("a model's name stands for {model}, and never becomes an option", async (context) => {
  assert.equal((await ask("model")).text, "model");
  const gateway = { adapters: { only: { type: "command", ...programs.model } } };
  const { address } = await openGateway(context, { env, gateway });
  assert.equal((await tell(address, { on: "chat", say: "hi", more: { model: "gpt {prompt}" } })).text, "gpt {prompt}");
  const refused = await tell(address, { on: "chat", say: "hi", more: { model: "--force" } });
  assert.deepEqual([refused.status, refused.error?.["code"]], [400, "adapter_bad_request"]);
});

for (const [what, settings, why] of [
  ["an empty argv", { argv: [] }, /gateway\.adapters\.agent\.argv/],
  ["a placeholder as the program", { argv: ["{model}"] }, /placeholder/],
  ["a caller's words in a shell's script", { argv: ["sh", "-c", "agent '{prompt}'"] }, /caller's words/],
  ["a caller's words behind other options", { argv: ["sh", "-eu", "-c", "agent {model}"] }, /caller's words/],
] as const) {
  test(`a gateway does not start with ${what}`, async (context) => {
    const options = { gateway: { adapters: { agent: { type: "command", ...settings } } } };
    const { message } = await whyNot(options, makeFolder(context), { env });
    assert.match(message, /agent/);
    assert.match(message, why);
  });
}
