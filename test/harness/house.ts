/**
 * The house under test, through its public face alone. Everything that a test knows of a gateway's inside is here: how
 * it is opened, and how a scripted model is put behind it.
 */
import { after } from "node:test";
import {
  type Adapter,
  type Delta,
  type DoorLog,
  type Item,
  openPortico,
  type Portico,
  type PorticoSettings,
  type Turn,
} from "../../src/index.ts";
import { type Keys, withStore } from "./engine.ts";
import { endAfter, makeFolder, type Scope } from "./scope.ts";

export { ConfigError, openPortico } from "../../src/index.ts";
export type { Adapter, Delta, Item, PorticoSettings, Problem, Turn } from "../../src/index.ts";
export { endAfter, findFreePort, makeFolder, type Scope } from "./scope.ts";

/** The endpoints' token, of the owner `default`. */
export const token = "sk-gateway-0123456789abcdef";
/** The general token, the operator's. */
export const operatorToken = "sk-operator-0123456789abcdef";
export const authorization = `Bearer ${token}`;
export const headers = { authorization, "content-type": "application/json" } as const;

/** What a scripted model does with a turn: batches of deltas, or a generator that may wait, throw and see the signal. */
export type Script =
  | readonly (readonly Delta[])[]
  | ((turn: Turn, signal: AbortSignal) => AsyncIterable<readonly Delta[]>);

/** A model in this process, given to the gateway by name. */
export interface Model {
  /** Every turn it has been asked, oldest first. */
  readonly turns: Turn[];
  /** What it answers from now on; at first `re: ` and the last words it was shown. */
  script: Script;
  readonly adapter: Adapter;
}

export function createModel(script: Script = repeatLast): Model {
  const model: Model = {
    turns: [],
    script,
    adapter: {
      async *stream(turn, signal) {
        model.turns.push(turn);
        const { script } = model;
        yield* typeof script === "function" ? script(turn, signal) : script;
      },
      models: async () => ["scripted"],
    },
  };
  return model;
}

export const repeatLast: Script = async function* (turn) {
  yield say(`re: ${/^[^:]*: (.*)$/s.exec(toLines(turn.items).at(-1) ?? "")?.[1] ?? ""}`);
};

export function say(...words: string[]): Delta[] {
  return words.map((text) => ({ type: "text", text }));
}

/** One whole call, as a model makes it. */
export function call(callId: string, name: string, written = "{}", index = 0): Delta[] {
  return [
    { type: "tool-call", index, callId, name },
    { type: "tool-arguments", index, text: written },
  ];
}

export const usage = { inputTokens: 3, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0 };

/** What a model saw, a line an item: `user: hi`, `call c1: f {}`, `output c1: ok`, `reasoning: hm`. */
export function toLines(items: readonly Item[]): string[] {
  return items.map((item) => {
    switch (item.type) {
      case "message":
        return `${item.role}: ${textOf(item.content)}`;
      case "tool-call":
        return `call ${item.callId}: ${item.name} ${item.arguments}`;
      case "tool-output":
        return `output ${item.callId}: ${textOf(item.output)}`;
      case "reasoning":
        return `reasoning: ${item.text || item.summary.join(" ")}`;
      default:
        return item.type;
    }
  });
}

/** The lines of a turn, its instructions first. */
export function seenBy(turn: Turn | undefined): string[] {
  if (turn === undefined) return ["nothing was asked"];
  const { instructions } = turn.settings;
  return [...(instructions === undefined ? [] : [`instructions: ${instructions}`]), ...toLines(turn.items)];
}

type Content = Extract<Item, { type: "message" }>["content"];

function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content
    .map((part) => (part.type === "text" || part.type === "refusal" ? part.text : `[${part.type}]`))
    .join("");
}

export interface Options {
  /** Keys under `gateway`, `gateway.http` and `gateway.http.limits`, beside the usual ones. */
  readonly gateway?: Keys;
  readonly http?: Keys;
  readonly limits?: Keys;
  /** What the scripted model `model` says first. Where `gateway.adapters` are set there is none, but for `given`. */
  readonly script?: Script;
  readonly given?: Readonly<Record<string, Adapter>>;
  readonly now?: () => Date;
  /** The data folder, for a gateway that finds what another left. */
  readonly folder?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface Logged {
  readonly level: "info" | "error";
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export interface Gateway extends Portico {
  readonly address: string;
  /** Where its data is. */
  readonly folder: string;
  readonly model: Model;
  readonly logged: readonly Logged[];
  /** The settings it was opened with, for a reload with others. */
  readonly settings: PorticoSettings;
}

/** Opens a gateway with both endpoints on a free port of the loopback address; it is closed at the end of the scope. */
export async function openGateway(scope: Scope, options: Options = {}): Promise<Gateway> {
  const folder = options.folder ?? makeFolder(scope);
  const model = createModel(options.script);
  const logged: Logged[] = [];
  const write =
    (level: Logged["level"]): DoorLog["info"] =>
    (fields, message) =>
      void logged.push({ level, fields: fields as Logged["fields"], message });
  const isScripted = options.gateway?.["adapters"] === undefined;
  const given = { ...(isScripted && { model: model.adapter }), ...options.given };
  const settings = toSettings({ ...options, gateway: await withStore(folder, options.gateway) });
  const portico = await openPortico(settings, {
    folder,
    env: options.env ?? {},
    adapters: given,
    log: { info: write("info"), error: write("error") },
    ...(options.now && { now: options.now }),
  });
  endAfter(scope, () => portico.close());
  if (portico.address === undefined) throw new Error("The gateway does not listen.");
  return { ...portico, address: portico.address, folder, model, logged, settings };
}

/** One gateway for all tests of a file, opened by the first that asks for it. Its model's script is each test's to set. */
export function shareGateway(options: Options = {}): () => Promise<Gateway> {
  const scope: Scope = { after: (end) => void ends.push(end) };
  const ends: (() => unknown)[] = [];
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  let opened: Promise<Gateway> | undefined;
  return () => (opened ??= openGateway(scope, options));
}

/** The settings of `options`, as a config file has them. */
export function toSettings({ gateway = {}, http = {}, limits = {} }: Options) {
  const settings = {
    gateway: {
      auth: { token: operatorToken },
      ...gateway,
      http: {
        port: 0,
        auth_token: token,
        endpoints: { compat_chat: true, compat_responses: true },
        ...http,
        ...(Object.keys(limits).length > 0 && { limits }),
      },
    },
  };
  return settings as PorticoSettings;
}

/** A promise with its handle, by which a test lets a model go on. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}
