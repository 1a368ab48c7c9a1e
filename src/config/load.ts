/** Loads a configuration: settings and environment in, a complete one out, or all its problems. */
import { join } from "node:path";
import { adapterKinds } from "./adapters.ts";
import { type AdapterShape, type Config, type FileShape, toConfig } from "./config.ts";
import { findDangers } from "./dangers.ts";
import { detectAdapter, type Environment, type Probe } from "./detect.ts";
import { givenKinds, withGiven } from "./given.ts";
import { toFileForm } from "./keys.ts";
import { ConfigError, formatPath, isObject, type Problem } from "./problem.ts";
import { readWhole, show } from "./read.ts";
import { checkRules, type Partly } from "./rules.ts";

/** Beside the settings. */
export interface Circumstances {
  /** Paths are relative to it. */
  readonly folder: string;
  /** Where they come from, with its permission bits. */
  readonly file?: string | undefined;
  readonly mode?: number | undefined;
  readonly env: Environment;
  readonly probe: Probe;
  readonly now: Date;
  /** Values of `gateway.http` that count more; their problems name the option. */
  readonly overrides?: Readonly<Record<string, unknown>> | undefined;
  /** Adapters of an embedding program, by name. */
  readonly given?: Readonly<Record<string, unknown>> | undefined;
}

export interface Loaded {
  readonly config: Config;
  /** In clear; of named ones only the digest is needed. */
  readonly tokens: { readonly client: string | undefined; readonly operator: string | undefined };
  /** All of it in the shape of the file, without its secrets. */
  readonly shown: unknown;
  readonly warnings: readonly Problem[];
  /** Why turns go to the default adapter. */
  readonly reason: string;
  /** A model's name for a first request; undefined: only the adapter knows one. */
  readonly exampleModel: string | undefined;
}

/** Throws a ConfigError with every problem. */
export async function loadConfig(settings: unknown, around: Circumstances): Promise<Loaded> {
  const { folder, file, env, overrides = {}, given = {} } = around;
  const form = toFileForm(Object.keys(given).length === 0 ? adapterKinds : { ...adapterKinds, ...givenKinds });
  const all = withGiven(mergeAt(settings, ["gateway", "http"], overrides), given);
  const detected = namesAdapters(all.settings) ? undefined : await detectAdapter(env, around.probe);
  const added = detected && { [detected.name]: detected.adapter };
  const found = readWhole(form, mergeAt(all.settings, ["gateway", "adapters"], added), folder, env);
  const conflicts = checkRules((found.value ?? {}) as Partly<FileShape>, found);

  // What did not come from the file is told under its own name.
  const own = Object.keys(overrides).map((key) => [`gateway.http.${key}`, `--${key}`] as const);
  const places = new Map<string, string>([...own, ...(detected?.places ?? [])]);
  const name = ({ path, message }: Problem): Problem => ({ path: places.get(path) ?? path, message });
  const problems = [...all.problems, ...found.problems, ...conflicts];
  if (problems.length > 0) throw new ConfigError(problems.map(name), file);

  // Nothing is wrong, so it has the shape.
  const shape = complete(found.value as FileShape);
  const { http, auth, adapters, default_adapter: chosen = "" } = shape.gateway;
  const { type, model, models } = adapters[chosen] as AdapterShape;
  const secret = found.secrets.find((path) => !places.has(formatPath(path)));
  return {
    config: toConfig(shape, folder, file),
    tokens: { client: http.auth_token, operator: auth.token },
    shown: show(shape, found.shown),
    warnings: findDangers(shape, around.mode, secret, around.now).map(name),
    reason: detected?.reason ?? `type ${type}, configured`,
    exampleModel: detected === undefined ? (Object.keys(models)[0] ?? model) : detected.exampleModel,
  };
}

/** The same with more in the object at a path; what is no object on the way stays as it is. */
function mergeAt(value: unknown, [key, ...rest]: readonly string[], more: object | undefined): unknown {
  if (!isObject(value) || more === undefined) return value;
  if (key === undefined) return { ...value, ...more };
  return { ...value, [key]: mergeAt(value[key] ?? {}, rest, more) };
}

function namesAdapters(settings: unknown): boolean {
  const { gateway = {} } = isObject(settings) ? settings : {};
  const { adapters = {} } = isObject(gateway) ? gateway : {};
  return !isObject(adapters) || Object.keys(adapters).length > 0;
}

/** Fills in what depends on other keys. */
function complete({ gateway, ...others }: FileShape): FileShape {
  const { sessions, adapters, default_adapter: chosen = Object.keys(adapters)[0], data_dir: dataDir } = gateway;
  const { store = `sqlite:${join(dataDir, "portico.db")}` } = sessions;
  return { ...others, gateway: { ...gateway, default_adapter: chosen, sessions: { ...sessions, store } } };
}
