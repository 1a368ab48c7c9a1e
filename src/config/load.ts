/** Loads the configuration: text and environment in, a complete one out, or all its problems. */
import { dirname } from "node:path";
import type { ObjectSchema } from "../core/schema.ts";
import { type Config, toConfig } from "./config.ts";
import { findDangers, findOpenSecret } from "./dangers.ts";
import { type Detected, detectAdapter, type Environment } from "./detect.ts";
import { fillDefaults } from "./fill.ts";
import { judgeHeaders } from "./headers.ts";
import { parseJson } from "./json.ts";
import { nearest } from "./nearest.ts";
import { isObject, mergeAt, valueAt } from "./path.ts";
import { withPlaces } from "./places.ts";
import { ConfigError, misfit, problem, type Problem, type Problems } from "./problem.ts";
import { resolveReferences, type Shown, unresolved } from "./references.ts";
import { findConflicts } from "./rules.ts";
import { type AdapterOptions, type FileShape, fileSchema } from "./schema.ts";
import { adapterSchema } from "./schema/adapter.ts";
import { validate } from "./validate.ts";

/** A file that was read, with its permission bits where the system has them, or what replaces it in a run without one. */
export type Source =
  | { readonly file: string; readonly text: string; readonly mode?: number | undefined }
  | { readonly folder: string; readonly generatedToken: string };

export interface LoadSurroundings extends Environment {
  readonly adapterOptions: AdapterOptions;
  readonly readText: (file: string) => string;
  readonly now: Date;
  /** Keys of `gateway.http` that override the file's. */
  readonly overrides?: object;
  /** Problems with them that are already known. */
  readonly problems?: readonly Problem[];
}

export interface Loaded {
  readonly config: Config;
  /** The same in the shape of the file, complete, with secrets. */
  readonly effective: unknown;
  /** Shows what came from a reference as it is written. */
  readonly shown: Shown;
  readonly warnings: readonly Problem[];
  /** Why this adapter is used. */
  readonly reason: string;
  /** A model's name for a first request, if one is configured; otherwise only the adapter knows. */
  readonly exampleModel: string | undefined;
}

/** Throws a ConfigError with every problem. */
export async function loadConfig(source: Source, surroundings: LoadSurroundings): Promise<Loaded> {
  const folder = "file" in source ? dirname(source.file) : source.folder;
  const read = "file" in source ? parseJson(source.text) : withoutFile(source.generatedToken);
  const written = mergeAt(read, ["gateway", "http"], surroundings.overrides ?? {});
  const { value, problems, shown } = resolveReferences(written, folder, surroundings);
  const complete = fillDefaults(fileSchema, value);
  const found = [
    ...(surroundings.problems ?? []),
    ...problems,
    ...validate(fileSchema, complete, [], shown),
    ...completeAdapters(complete, surroundings.adapterOptions, shown),
    ...judgeHeaders(complete, surroundings.adapterOptions),
    ...(isObject(complete) && isObject(complete.gateway) ? findConflicts(complete, shown) : []),
  ];
  if (found.length > 0) throw new ConfigError(found);

  const shape = complete as FileShape;
  const choice = await chooseAdapter(shape, surroundings);
  const effective = withPlaces(shape, folder, choice.name, surroundings.adapterOptions);
  const { file, mode } = "file" in source ? source : {};
  const warnings = [...findDangers(effective, surroundings.now), ...findOpenSecret(written, mode)];
  const config = toConfig(effective, file);
  return { config, effective, shown, warnings, reason: choice.reason, exampleModel: choice.exampleModel };
}

/** Without a file both endpoints and the console are on: nobody said otherwise, and only this machine reaches them. */
function withoutFile(token: string): unknown {
  const endpoints = { compat_chat: true, compat_responses: true };
  return { gateway: { auth: { token }, http: { endpoints, console: true } } };
}

/** Fills in each adapter's defaults, and validates it by the schema of its type. */
function* completeAdapters(file: unknown, adapterOptions: AdapterOptions, shown: Shown): Problems {
  const adapters = valueAt(file, ["gateway", "adapters"]);
  if (!isObject(adapters)) return;
  const types = Object.keys(adapterOptions);
  for (const [name, adapter] of Object.entries(adapters)) {
    if (adapter === unresolved) continue;
    const path = ["gateway", "adapters", name];
    const type = isObject(adapter) ? adapter.type : undefined;
    const options = typeof type === "string" && types.includes(type) ? adapterOptions[type] : undefined;
    if (!isObject(adapter)) yield misfit(path, shown(path, adapter), "an object with a 'type'");
    else if (type === undefined) yield problem([...path, "type"], `missing; required: ${quote(types)}`);
    else if (typeof type === "string" && options !== undefined) {
      const schema = adapterSchema(type, options);
      adapters[name] = fillDefaults(schema, adapter);
      yield* validate(schema, adapters[name], path, shown);
    } else if (type !== unresolved) {
      const meant = typeof type === "string" ? nearest(type, types) : undefined;
      const remedy = meant === undefined ? namesNoServer : `did you mean '${meant}'?`;
      yield misfit([...path, "type"], shown([...path, "type"], type), `${quote(types)}; ${remedy}`);
    }
  }
}

/** Many write the name of their server. */
const namesNoServer = `a server such as Ollama, vLLM or OpenRouter is reached with "openai" and its 'base_url'`;

async function chooseAdapter(
  file: FileShape,
  environment: LoadSurroundings,
): Promise<Pick<Detected, "name" | "reason" | "exampleModel">> {
  const { adapters, default_adapter } = file.gateway;
  const name = default_adapter ?? Object.keys(adapters)[0];
  if (name !== undefined) {
    const { type, model, models } = adapters[name] as { type: string; model?: string; models: Record<string, string> };
    return { name, reason: `type ${type}, configured`, exampleModel: Object.keys(models)[0] ?? model };
  }
  const detected = await detectAdapter(environment);
  const type = String(detected.adapter.type);
  const options = environment.adapterOptions[type];
  if (options === undefined) throw new Error(`There is no adapter of the type '${type}' to fall back on.`);
  checkServer(detected, options);
  adapters[detected.name] = fillDefaults(adapterSchema(type, options), { ...detected.adapter });
  return detected;
}

/** The environment may name what the file may have as `base_url`. */
function checkServer({ server }: Detected, { properties }: ObjectSchema): void {
  if (server === undefined) return;
  const found = [...validate(properties["base_url"] ?? {}, server.url, [server.variable], (_, value) => value)];
  if (found.length === 0) return;
  throw new ConfigError(found.map(({ path, message }) => ({ path, message: `(environment) ${message}` })));
}

function quote(words: readonly string[]): string {
  return words.map((word) => JSON.stringify(word)).join(", ");
}
