/** Loads a configuration: text and environment in, a complete one out, or all its problems. */
import { dirname, join } from "node:path";
import { adapterKinds } from "./adapters.ts";
import { type AdapterShape, type Config, type FileShape, toConfig } from "./config.ts";
import { findDangers } from "./dangers.ts";
import { type Detected, detectAdapter, type Environment, type Probe } from "./detect.ts";
import type { Keys } from "./form.ts";
import { parseJson } from "./json.ts";
import { toFileForm } from "./keys.ts";
import { maskSecrets } from "./mask.ts";
import { ConfigError, isObject, problem, type Problem } from "./problem.ts";
import { type Reading, readValue } from "./read.ts";
import { checkRules } from "./rules.ts";

/** A file, with its permission bits where the system has them; settings that a program gives; or a run without any. */
export type Source =
  | { readonly file: string; readonly text: string; readonly mode?: number | undefined }
  | { readonly folder: string; readonly settings: unknown }
  | { readonly folder: string; readonly tokens: Tokens };

/** In clear. */
export interface Tokens {
  readonly client?: string | undefined;
  readonly operator?: string | undefined;
}

export interface Surroundings {
  readonly env: Environment;
  readonly probe: Probe;
  readonly now: Date;
  readonly kinds?: Readonly<Record<string, Keys>>;
  /** Values of `gateway.http` that count more than the file's; their problems name the option. */
  readonly overrides?: Readonly<Record<string, unknown>>;
  /** Problems that are known already. */
  readonly problems?: readonly Problem[];
}

export interface Loaded {
  readonly config: Config;
  readonly tokens: Tokens;
  /** All of it in the shape of the file, without its secrets. */
  readonly shown: unknown;
  readonly warnings: readonly Problem[];
  /** Why turns go to the default adapter. */
  readonly reason: string;
  /** A model's name for a first request; undefined: only the adapter knows one. */
  readonly exampleModel: string | undefined;
}

/** Throws a ConfigError with every problem. */
export async function loadConfig(source: Source, around: Surroundings): Promise<Loaded> {
  const { kinds = adapterKinds, overrides = {} } = around;
  const file = "file" in source ? source.file : undefined;
  const folder = "file" in source ? dirname(source.file) : source.folder;
  const form = toFileForm(kinds);
  const raw = withOverrides(await readSource(source), overrides);
  const reading: Reading = { env: around.env, folder, problems: [...(around.problems ?? [])], written: new Map() };

  const read = readValue(form, raw, [], reading);
  const { problems } = reading;
  checkRules(read, reading);
  const detected = hasNoAdapter(read) ? await detectAdapter(around.env, around.probe) : undefined;
  const adapters = detected && readDetected(detected, reading, kinds);
  const named = problems.map((each) => nameOption(each, overrides));
  if (named.length > 0) throw new ConfigError(named, file);

  // Nothing is wrong, so it has the shape.
  const shape = complete(read as FileShape, adapters);
  const { http, auth } = shape.gateway;
  const mode = "file" in source ? source.mode : undefined;
  const warnings = findDangers(shape, { form, raw, mode, now: around.now });
  return {
    config: toConfig(shape, file),
    tokens: { client: http.auth_token, operator: auth.token },
    shown: maskSecrets(form, shape, reading.written),
    warnings: warnings.map((each) => nameOption(each, overrides)),
    ...(detected ?? describeChosen(shape)),
  };
}

async function readSource(source: Source): Promise<unknown> {
  if ("text" in source) return parseJson(source.text);
  if ("settings" in source) return source.settings;
  // Nobody said otherwise, and only this machine reaches it.
  const endpoints = { compat_chat: true, compat_responses: true };
  const { client, operator } = source.tokens;
  return { gateway: { auth: { token: operator }, http: { auth_token: client, endpoints, console: true } } };
}

function withOverrides(raw: unknown, overrides: object): unknown {
  const { gateway = {} } = isObject(raw) ? raw : {};
  const { http = {} } = isObject(gateway) ? gateway : {};
  if (Object.keys(overrides).length === 0 || !isObject(raw) || !isObject(gateway) || !isObject(http)) return raw;
  return { ...raw, gateway: { ...gateway, http: { ...http, ...overrides } } };
}

function nameOption({ path, message }: Problem, overrides: object): Problem {
  const key = /^gateway\.http\.(\w+)$/.exec(path)?.[1] ?? "";
  return { path: Object.hasOwn(overrides, key) ? `--${key}` : path, message };
}

function hasNoAdapter(read: unknown): boolean {
  const gateway = isObject(read) ? read["gateway"] : undefined;
  const adapters = isObject(gateway) ? gateway["adapters"] : undefined;
  return isObject(adapters) && Object.keys(adapters).length === 0;
}

/** The adapter as if it stood in the file; its problems name the variables. */
function readDetected({ name, adapter, variables }: Detected, reading: Reading, kinds: Readonly<Record<string, Keys>>) {
  const form = toFileForm(kinds).keys.gateway.keys.adapters;
  const problems: Problem[] = [];
  const read = readValue(form, { [name]: adapter }, [], { ...reading, problems, written: new Map() });
  for (const { path, message } of problems) {
    const variable = variables[path.slice(name.length + 1)];
    reading.problems.push(problem([variable ?? path], `(environment) ${message}`));
  }
  return read as Readonly<Record<string, AdapterShape>>;
}

/** Fills in what depends on other keys. */
function complete(
  { gateway, ...others }: FileShape,
  detected: Readonly<Record<string, unknown>> | undefined,
): FileShape {
  const adapters = detected ?? gateway.adapters;
  const { store = `sqlite:${join(gateway.data_dir, "portico.db")}` } = gateway.sessions;
  const [first] = Object.keys(adapters);
  return {
    ...others,
    gateway: {
      ...gateway,
      adapters,
      default_adapter: gateway.default_adapter ?? first,
      sessions: { ...gateway.sessions, store },
    },
  };
}

function describeChosen({ gateway }: FileShape): Pick<Loaded, "reason" | "exampleModel"> {
  const { type, model, models } = gateway.adapters[gateway.default_adapter ?? ""] as AdapterShape;
  return { reason: `type ${type}, configured`, exampleModel: Object.keys(models)[0] ?? model };
}
