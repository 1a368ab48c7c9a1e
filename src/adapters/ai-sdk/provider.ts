/** Finds a provider's package in the operator's folder, and makes models of the AI SDK's specification. */
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
  /** The URLs that it takes, by media type. */
  readonly supportedUrls?: SupportedUrls | PromiseLike<SupportedUrls> | undefined;
  doStream(call: unknown): PromiseLike<{ readonly stream: ReadableStream<unknown> }>;
}

export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;
type MakeModel = (name: string) => Model;

/** Throws if there is no such package; loads it when the first model is needed. */
export function createProvider(settings: ProviderSettings, folder: string): (name: string) => Promise<Model> {
  const file = findPackage(settings.package, folder);
  let loading: Promise<MakeModel> | undefined;
  return async (name) => (await (loading ??= loadProvider(file, settings)))(name);
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
  const unusable = (why: string) => new GatewayError("adapter_error", `The package '${packageName}' ${why}`);
  const exported: Readonly<Record<string, unknown>> = await import(pathToFileURL(file).href);
  const names = Object.keys(exported).filter((key) => key.startsWith("create"));
  // A function may have both an old and a new name.
  const [create, ...others] = new Set((chosen === undefined ? names : [chosen]).map((key) => exported[key]));
  if (typeof create !== "function" || others.length > 0) {
    const remedy = names.length === 0 ? "" : ` Set the adapter's 'provider' to one of ${names.join(", ")}.`;
    throw unusable(`has no single export that creates a provider.${remedy}`);
  }
  // Some report usage only on request.
  const provider = create({ includeUsage: true, fetch: fetchHere, ...options });
  return (name: string): Model => {
    const model = Object(typeof provider === "function" ? provider(name) : provider?.languageModel?.(name));
    const { specificationVersion: version, doStream } = model;
    if (typeof doStream === "function" && version === "v4") return model;
    throw unusable(`makes models of version ${String(version)} of the AI SDK's specification; the gateway knows v4.`);
  };
}

/** Follows no redirect: it would take the key along. */
const fetchHere: typeof fetch = (input, init) => fetch(input, { ...init, redirect: "manual" });
