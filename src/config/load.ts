/** Loads a configuration: settings and environment in, a complete one out, or all its problems. */
import { join } from "node:path";
import { type AdapterShape, type Config, type FileShape, toConfig } from "./config.ts";
import { detectAdapter, type Environment, type Probe } from "./detect.ts";
import { toFileForm } from "./keys.ts";
import { ConfigError, formatPath, isObject, problem, type Problem, valueAt } from "./problem.ts";
import { readWhole, show } from "./read.ts";
import { checkRules, findDangers } from "./rules.ts";

/** Beside the settings. */
export interface Circumstances {
  /** Paths are relative to it. */
  readonly folder: string;
  /** Where they come from, with its permission bits. */
  readonly file?: string | undefined;
  readonly mode?: number | undefined;
  readonly env: Environment;
  readonly probe: Probe;
  /** Values of `gateway.http` that count more; their problems name the option. */
  readonly overrides?: Readonly<Record<string, unknown>> | undefined;
  /** The names of adapters that an embedding program passes. */
  readonly given?: readonly string[] | undefined;
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
  const { folder, file, env, overrides = {}, given = [] } = around;
  const written = valueAt(settings, ["gateway", "adapters"]) ?? {};
  const hasNone = isObject(written) && Object.keys(written).length + given.length === 0;
  const detected = hasNone ? await detectAdapter(env, around.probe) : undefined;
  const passed = Object.fromEntries(given.map((name) => [name, { type: "given" }]));
  const added = detected === undefined ? passed : { [detected.name]: detected.adapter };
  const all = mergeAt(mergeAt(settings, ["gateway", "http"], overrides), ["gateway", "adapters"], added);
  const found = readWhole(toFileForm(given.length > 0), all, folder, env);

  const twice = given.filter((name) => isObject(written) && Object.hasOwn(written, name));
  const problems = [
    ...twice.map((name) => problem(["gateway", "adapters", name], "an adapter of this name is also passed")),
    ...found.problems,
    ...checkRules(all, found),
  ];
  const places = new Map(Object.keys(overrides).map((key) => [`gateway.http.${key}`, `--${key}`]));
  const name = ({ path, message }: Problem): Problem => ({ path: places.get(path) ?? path, message });
  if (problems.length > 0) throw new ConfigError(problems.map(name), file);

  // Nothing is wrong, so it has the shape.
  const shape = complete(found.value as FileShape);
  const { http, auth, adapters, default_adapter: chosen = "" } = shape.gateway;
  const { type, model, models } = adapters[chosen] as AdapterShape;
  return {
    config: toConfig(shape, folder, file),
    tokens: { client: http.auth_token, operator: auth.token },
    shown: show(shape, new Map(found.texts.map(({ path, shown }) => [formatPath(path), shown]))),
    warnings: findDangers(shape, found.texts, around.mode).map(name),
    reason: detected?.reason ?? `type ${type}, configured`,
    exampleModel: detected === undefined ? (Object.keys(models)[0] ?? model) : detected.exampleModel,
  };
}

/** The same with more in the object at a path; what is no object on the way stays as it is. */
function mergeAt(value: unknown, [key, ...rest]: readonly string[], more: object): unknown {
  if (!isObject(value)) return value;
  if (key === undefined) return { ...value, ...more };
  return { ...value, [key]: mergeAt(value[key] === undefined ? {} : value[key], rest, more) };
}

/** Fills in what depends on other keys. */
function complete({ gateway, ...others }: FileShape): FileShape {
  const { sessions, adapters, default_adapter: chosen = Object.keys(adapters)[0], data_dir: dataDir } = gateway;
  const { store = `sqlite:${join(dataDir, "portico.db")}` } = sessions;
  return { ...others, gateway: { ...gateway, default_adapter: chosen, sessions: { ...sessions, store } } };
}
