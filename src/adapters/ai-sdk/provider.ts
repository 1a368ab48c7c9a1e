/** Finds a provider's package in the operator's folder, and makes models of any version of the AI SDK's specification. */
import type { LanguageModelV3Prompt } from "@ai-sdk/provider";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { GatewayError } from "../../core/errors.ts";

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
type MakeModel = (name: string) => Model;

/** Throws if there is no such package; loads it when the first model is needed. */
export function createProvider(settings: ProviderSettings, folder: string): (name: string) => Promise<Model> {
  const file = findPackage(settings.package, folder);
  let loading: Promise<MakeModel> | undefined;
  return async (name) => {
    loading ??= loadProvider(file, settings);
    // What failed may be set up by the next turn.
    loading.catch(() => (loading = undefined));
    return (await loading)(name);
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

async function loadProvider(file: string, { package: packageName, provider: chosen, options }: ProviderSettings) {
  const unusable = (why: string, cause?: unknown): GatewayError =>
    new GatewayError("adapter_error", `The package '${packageName}' ${why}`, { cause });
  const wrongOptions = (cause: unknown): never => {
    throw unusable("cannot be used with the adapter's options. The log has the cause.", cause);
  };
  const exported: Readonly<Record<string, unknown>> = await import(pathToFileURL(file).href).catch(wrongOptions);
  const names = Object.keys(exported).filter((key) => key.startsWith("create"));
  // A function may have both an old and a new name.
  const [create, ...others] = new Set((chosen === undefined ? names : [chosen]).map((key) => exported[key]));
  if (typeof create !== "function" || others.length > 0) {
    const remedy = names.length === 0 ? "" : ` Set the adapter's 'provider' to one of ${names.join(", ")}.`;
    throw unusable(`has no single export that creates a provider.${remedy}`);
  }
  // Some report usage only on request.
  const provider = await Promise.try(() => create({ includeUsage: true, fetch: fetchHere, ...options })).catch(
    wrongOptions,
  );
  return (name: string): Model => {
    const model = Object(typeof provider === "function" ? provider(name) : provider?.languageModel?.(name));
    const { specificationVersion: version, doStream } = model;
    if (typeof doStream === "function" && /^v[234]$/.test(version)) return model;
    throw unusable(
      `makes models of version ${String(version)} of the AI SDK's specification; the gateway knows v2 to v4.`,
    );
  };
}

/** Follows no redirect: it would take the key along. */
const fetchHere: typeof fetch = (input, init) => fetch(input, { ...init, redirect: "manual" });

/** Version 4 tags a file's content with its kind. */
export function toVersion<Call extends { readonly prompt: LanguageModelV3Prompt }>(
  call: Call,
  version: string,
): unknown {
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
