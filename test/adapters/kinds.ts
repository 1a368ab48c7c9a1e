/** Every kind of adapter, with a model behind it that answers what a test says: the rows of the contract. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { type Delta, endAfter, makeFolder, openGateway, type Scope, type Turn } from "../harness/house.ts";
import { answerJson, beginEvents, type Script, startUpstream } from "../harness/upstream.ts";
import { byName, makePipe, type Finish, type Usage } from "./scene.ts";
import { anthropic, answerStream, compatible, google, toAdapter, type Wire } from "./wires.ts";

/** What the model answers, in this order; it fails or falls silent behind its pieces. */
export interface Said {
  readonly reasoning?: readonly string[];
  readonly pieces?: readonly string[];
  readonly calls?: readonly { readonly callId: string; readonly name: string; readonly arguments: string }[];
  readonly finish?: Finish;
  readonly failure?: { readonly status: number; readonly code: string; readonly message: string };
  readonly hangs?: boolean;
}

/** What can be noticed from behind the adapter. */
export interface Watch {
  readonly asked: Promise<unknown>;
  /** The adapter has let go: the socket is closed, the program gone, the signal aborted. */
  readonly gone: Promise<unknown>;
}

export interface Kind {
  /** What it answers from now on. Returns what a caller has to say for it. */
  says(said: Said): string;
  /** What it was shown last, as text; absent where only its answer tells. */
  shown?(): string;
  /** Of the next turn; absent where nobody can notice. */
  watch?(): Watch;
  readonly usage: Usage;
}

interface Made extends Kind {
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly given?: { stream(turn: Turn, signal: AbortSignal): AsyncIterable<readonly Delta[]> };
}

const usage: Usage = { inputTokens: 11, cachedTokens: 4, outputTokens: 7, reasoningTokens: 2 };
const hello = "Say what you are told to say.";

export const kindNames = ["echo", "command", "module", "given", "openai", "anthropic", "google", "compatible"] as const;
export type KindName = (typeof kindNames)[number];
/** Those that give up on a silent model: an adapter that a program passes in has no such limits. */
export const patient: readonly KindName[] = ["echo", "given"];

/** One gateway with all of them, and each again with one short limit, as `command-idle`. */
export async function openKinds(scope: Scope) {
  const folder = makeFolder(scope);
  const kinds: Record<KindName, Made> = {
    echo: createEcho(),
    command: createCommand(join(folder, "program")),
    module: createModule(folder),
    given: createGiven(),
    openai: await createServed(scope, compatible, (url) => ({ type: "openai", base_url: `${url}/v1` })),
    anthropic: await createServed(scope, anthropic),
    google: await createServed(scope, google),
    compatible: await createServed(scope, compatible),
  };
  const adapters = Object.entries(kinds).flatMap(([name, { settings }]) => {
    if (settings === undefined) return [];
    const plain = { retries: 0, ...settings };
    if (name === "echo") return [[name, plain]];
    const hasty = ["first_byte", "idle", "total"].map((limit) => {
      return [`${name}-${limit}`, { ...plain, [`${limit}_timeout_ms`]: 100 }];
    });
    return [[name, plain], ...hasty];
  });
  const given = { given: { stream: kinds.given.given!.stream } };
  const names = ["given", ...adapters.map(([name]) => String(name))];
  const gateway = { ...byName(names), adapters: Object.fromEntries(adapters) };
  const { address } = await openGateway(scope, { folder, given, gateway });
  return { address, kinds: kinds as Record<KindName, Kind> };
}

/** The caller's text directs it. */
function createEcho(): Made {
  return {
    settings: { type: "echo" },
    usage: { inputTokens: 7, cachedTokens: 0, outputTokens: 7, reasoningTokens: 0 },
    says({ pieces = [], calls = [], finish, failure }) {
      const text = pieces.join("");
      if (calls.length > 0) return calls.map((call) => `CALL ${call.name} ${call.arguments}`).join("\n");
      if (failure !== undefined)
        return pieces.length > 0 ? `FAIL after ${pieces.length} ${text}` : `ERROR ${failure.code}`;
      return finish === "length" ? `${text} and more` : text;
    },
  };
}

/** A shell that copies its input into one file, and its output out of another; a pipe tells when its group has ended. */
function createCommand(folder: string): Made {
  const [lines, turn, pipe] = ["lines", "turn", "pipe"].map((name) => join(folder, name)) as [string, string, string];
  const script = `cat >'${turn}'; if [ -p '${pipe}' ]; then exec 3>'${pipe}'; echo asked >&3; cat '${lines}'; sleep 60; else cat '${lines}'; fi`;
  let watched: ReturnType<typeof makePipe> | undefined;
  mkdirSync(folder);
  return {
    settings: { type: "command", argv: ["sh", "-c", script], output: "jsonl" },
    usage,
    says(said) {
      writeFileSync(lines, [...toLines(said)].map((line) => `${JSON.stringify(line)}\n`).join(""));
      rmSync(pipe, { force: true });
      watched = said.hangs ? makePipe(pipe) : undefined;
      return hello;
    },
    shown: () => readFileSync(turn, "utf8"),
    watch: () => ({ asked: watched!.written, gone: watched!.ended }),
  };
}

function* toLines(said: Said): Generator<object> {
  const { reasoning = [], pieces = [], calls = [], finish = "stop", failure, hangs } = said;
  for (const text of reasoning) yield { type: "reasoning", text };
  for (const text of pieces) yield { type: "text", text };
  for (const { callId, name, arguments: text } of calls) {
    yield { type: "tool-call", call_id: callId, name };
    yield { type: "tool-arguments", text };
  }
  if (hangs) return;
  if (failure !== undefined) return yield { type: "error", code: failure.code, message: failure.message };
  const { inputTokens, cachedTokens, outputTokens, reasoningTokens } = usage;
  yield {
    type: "usage",
    input_tokens: inputTokens,
    cached_tokens: cachedTokens,
    output_tokens: outputTokens,
    reasoning_tokens: reasoningTokens,
  };
  yield { type: "finish", reason: finish };
}

/** A model in this process that does not even listen to the signal. */
function createGiven(): Made {
  let said: Said = {};
  let last: Turn | undefined;
  let hears: (turn: Turn, signal: AbortSignal) => void = () => {};
  return {
    usage,
    says(next) {
      said = next;
      return hello;
    },
    shown: () => JSON.stringify(last?.items),
    watch() {
      const asked = Promise.withResolvers<AbortSignal>();
      hears = (_, signal) => asked.resolve(signal);
      return {
        asked: asked.promise,
        gone: asked.promise.then((signal) => (signal.aborted ? [] : once(signal, "abort"))),
      };
    },
    given: {
      async *stream(turn, signal) {
        last = turn;
        hears(turn, signal);
        const { reasoning = [], pieces = [], calls = [], finish = "stop", failure, hangs } = said;
        for (const text of reasoning) yield [{ type: "reasoning", text }];
        for (const text of pieces) yield [{ type: "text", text }];
        if (hangs) await new Promise(() => {});
        yield calls.flatMap(({ callId, name, arguments: text }, index): Delta[] => [
          { type: "tool-call", index, callId, name },
          { type: "tool-arguments", index, text },
        ]);
        if (failure !== undefined) throw Object.assign(new Error(failure.message), { code: failure.code });
        yield [
          { type: "usage", usage },
          { type: "finish", reason: finish },
        ];
      },
    },
  };
}

/** The same, found by a file. */
function createModule(folder: string): Made {
  const { given, ...made } = createGiven();
  const place = `portico-test-${folder}`;
  Reflect.set(globalThis, place, given);
  const text = `export default ({ place }) => ({ stream: (turn, signal) => globalThis[place].stream(turn, signal) });`;
  writeFileSync(join(folder, "adapter.mjs"), text);
  return { ...made, settings: { type: "module", path: "adapter.mjs", options: { place } } };
}

/** A provider's server on its wire. */
async function createServed(
  scope: Scope,
  wire: Wire,
  settings: (url: string) => Readonly<Record<string, unknown>> = (url) => toAdapter(wire, url),
): Promise<Made> {
  let script: Script = () => {};
  const asked: (() => void)[] = [];
  const gone: (() => void)[] = [];
  const server = await startUpstream((received, response) => {
    for (const tell of asked.splice(0)) tell();
    response.once("close", () => gone.splice(0).forEach((tell) => tell()));
    return script(received, response);
  });
  endAfter(scope, () => server.close());
  return {
    settings: settings(server.url),
    usage,
    says(said) {
      script = toScript(wire, said);
      return hello;
    },
    shown: () => server.received.at(-1)!.text,
    watch: () => ({
      asked: new Promise<void>((resolve) => asked.push(resolve)),
      gone: new Promise<void>((resolve) => gone.push(resolve)),
    }),
  };
}

function toScript(wire: Wire, said: Said): Script {
  const { reasoning = [], pieces = [], calls = [], finish = "stop", failure, hangs } = said;
  const before = [
    wire.begin(usage),
    ...(reasoning.length > 0 ? [wire.reason(reasoning)] : []),
    ...(pieces.length > 0 ? [wire.say(pieces)] : []),
  ];
  if (hangs) {
    return (_, response) => {
      if (pieces.length === 0) return;
      beginEvents(response);
      response.write(before.join(""));
    };
  }
  if (failure !== undefined) {
    const { status, message } = failure;
    return pieces.length > 0
      ? answerStream(...before, wire.fail(status, message))
      : answerJson(wire.refuse(status, message), status);
  }
  return answerStream(...before, calls.length > 0 ? wire.call(calls) : "", wire.end(finish, usage));
}
