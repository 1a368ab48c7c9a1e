/** Finds a provider's package in the operator's folder, and makes models of any version of the AI SDK's specification. */
import type { LanguageModelV3CallOptions, LanguageModelV3Prompt } from "@ai-sdk/provider";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { GatewayError } from "../../core/errors.ts";
import { isObject } from "../../wires/fields.ts";

export interface ProviderSettings {
  readonly package: string;
  /** The export that makes the provider; absent: the only one whose name begins with `create`. */
  readonly provider?: string | undefined;
  /** Its arguments. */
  readonly options: Readonly<Record<string, unknown>>;
}

export interface Model {
  readonly specificationVersion: string;
  /** The URLs that it takes, by media type. */
  readonly supportedUrls?: SupportedUrls | PromiseLike<SupportedUrls> | undefined;
  doStream(call: unknown): PromiseLike<{ readonly stream?: ReadableStream<unknown> | undefined }>;
}

export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;

/** The newest version has a field for the effort. */
export interface Call extends LanguageModelV3CallOptions {
  readonly reasoning?: string | undefined;
}

/** Throws if there is no such package; loads it when the first model is needed. */
export function createProvider(choice: ProviderSettings, folder: string): (model: string) => Promise<Model> {
  const file = findPackage(choice.package, folder);
  let loading: Promise<(model: string) => unknown> | undefined;
  return async (model) => {
    loading ??= loadProvider(file, choice);
    // What failed may be set up by the next turn.
    loading.catch(() => (loading = undefined));
    return checkModel((await loading)(model), choice.package);
  };
}

function findPackage(name: string, folder: string): string {
  for (const place of [join(folder, "portico.json"), import.meta.filename]) {
    try {
      return createRequire(place).resolve(name);
    } catch {
      // It may be in the next place.
    }
  }
  throw new Error(`The package '${name}' is not installed. Run: npm i ${name}`);
}

async function loadProvider(file: string, choice: ProviderSettings): Promise<(model: string) => unknown> {
  const provider = await makeProvider(file, choice);
  const make = typeof provider === "function" ? provider : Object(provider)["languageModel"];
  if (typeof make !== "function") throw unusable(choice.package, "makes no language models.");
  return (model) => make.call(provider, model);
}

async function makeProvider(file: string, choice: ProviderSettings): Promise<unknown> {
  try {
    const exported = (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>;
    // Some report usage only on request.
    return findMaker(exported, choice)({ includeUsage: true, fetch: fetchHere, ...choice.options });
  } catch (thrown) {
    if (thrown instanceof GatewayError) throw thrown;
    throw unusable(choice.package, "cannot be used with the adapter's options. The log has the cause.", thrown);
  }
}

/** Follows no redirect: it would take the key along. */
const fetchHere: typeof fetch = (input, init) => fetch(input, { ...init, redirect: "manual" });

type Maker = (options: unknown) => unknown;
const isMaker = (value: unknown): value is Maker => typeof value === "function";

function findMaker(exported: Readonly<Record<string, unknown>>, { package: name, provider }: ProviderSettings): Maker {
  const names = Object.keys(exported).filter((key) => key.startsWith("create") && isMaker(exported[key]));
  // A function may have both an old and a new name.
  const [maker, ...others] = new Set((provider === undefined ? names : [provider]).map((key) => exported[key]));
  if (isMaker(maker) && others.length === 0) return maker;
  const choices = names.length === 0 ? "none of its exports" : `its 'provider' must be one of ${names.join(", ")}`;
  throw unusable(name, `has no single export that creates a provider: ${choices}.`);
}

const versions: readonly unknown[] = ["v2", "v3", "v4"];

function checkModel(made: unknown, name: string): Model {
  if (!isObject(made) || typeof made["doStream"] !== "function") throw unusable(name, "makes no language models.");
  const { specificationVersion: version } = made;
  if (versions.includes(version)) return made as unknown as Model;
  const known = `the gateway knows ${versions.join(", ")}. Install another version of the package, or a newer gateway.`;
  throw unusable(name, `is of version ${String(version)} of the AI SDK's specification; ${known}`);
}

function unusable(name: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError("adapter_error", `The package '${name}' ${why}`, { cause });
}

/** Version 4 tags a file's content with its kind. */
export function toVersion(call: Call, version: string): unknown {
  return version === "v4" ? { ...call, prompt: call.prompt.map(tagFiles) } : call;
}

function tagFiles(message: LanguageModelV3Prompt[number]): unknown {
  if (typeof message.content === "string") return message;
  const content = message.content.map((part) => {
    if (part.type !== "file") return part;
    const { data } = part;
    return { ...part, data: data instanceof URL ? { type: "url", url: data } : { type: "data", data } };
  });
  return { ...message, content };
}
