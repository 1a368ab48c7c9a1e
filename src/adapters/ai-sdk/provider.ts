/** Finds a provider package in the operator's node_modules and makes models with it. */
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { GatewayError } from "../../core/errors.ts";
import { makeOnce } from "../../core/lazy.ts";
import { isObject } from "../json.ts";
import { type LanguageModel, toLanguageModel } from "./spec.ts";

export interface ProviderChoice {
  readonly packageName: string;
  /** The export that makes the provider; absent: the only one whose name begins with `create`. */
  readonly maker: string | undefined;
  readonly options: Readonly<Record<string, unknown>>;
  /** Packages are resolved as if a file in this folder imported them. */
  readonly folder: string;
}

/** Returns models by name. Throws if the package is missing. Loads it when the first model is needed. */
export function createProvider(choice: ProviderChoice): (name: string) => Promise<LanguageModel> {
  const file = findPackage(choice.packageName, choice.folder);
  const load = makeOnce(() => loadProvider(file, choice));
  return async (name) => toLanguageModel((await load())(name), choice.packageName);
}

function findPackage(packageName: string, folder: string): string {
  // Packages installed beside the gateway count too.
  for (const place of [resolve(folder, "portico.json"), import.meta.filename]) {
    try {
      return createRequire(place).resolve(packageName);
    } catch {
      // It may be in the next place.
    }
  }
  throw new Error(`The package '${packageName}' is not installed. Run: npm i ${packageName}`);
}

async function loadProvider(file: string, choice: ProviderChoice): Promise<(name: string) => unknown> {
  const { packageName } = choice;
  const provider = await makeProvider(file, choice);
  if (isFunction(provider)) return provider;
  const languageModel = isObject(provider) ? provider["languageModel"] : undefined;
  if (isFunction(languageModel)) return (name) => languageModel.call(provider, name);
  throw new GatewayError("adapter_error", `The package '${packageName}' does not provide language models.`);
}

async function makeProvider(file: string, choice: ProviderChoice): Promise<unknown> {
  try {
    const exported = (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>;
    // Some report usage only on request; the others ignore this.
    return findMaker(exported, choice)({ includeUsage: true, fetch: fetchHere, ...choice.options });
  } catch (thrown) {
    if (thrown instanceof GatewayError) throw thrown;
    const message = `The package '${choice.packageName}' cannot be used with the adapter's options. The log has the cause.`;
    throw new GatewayError("adapter_error", message, { cause: thrown });
  }
}

/** Follows no redirect: it would take the key along, which most providers send in a header of their own. */
const fetchHere: typeof fetch = (input, init) =>
  fetch(input, { ...init, redirect: "manual", dispatcher: withoutTimeouts() });

/** Node's own way to servers. It gives up after 300 s of silence; the adapter's limits may allow more. */
function withoutTimeouts(): RequestInit["dispatcher"] {
  const own = Reflect.get(globalThis, Symbol.for("undici.globalDispatcher.1")) as RequestInit["dispatcher"];
  const unlimited = { headersTimeout: 0, bodyTimeout: 0 } as const;
  // One of an older undici, which an operator has set, cannot be composed; it is used with its own limits.
  return own?.compose?.((dispatch) => (options, handler) => dispatch({ ...options, ...unlimited }, handler));
}

function findMaker(exported: Readonly<Record<string, unknown>>, { packageName, maker }: ProviderChoice): AnyFunction {
  const names = Object.keys(exported).filter((name) => name.startsWith("create") && isFunction(exported[name]));
  // A function may have both an old and a new name.
  const functions = new Set(maker === undefined ? names.map((name) => exported[name]) : [exported[maker]]);
  const [only] = functions;
  if (functions.size === 1 && isFunction(only)) return only;
  const choices = names.length === 0 ? "No function's name begins with 'create'" : `Choose one of ${names.join(", ")}`;
  throw new GatewayError(
    "adapter_error",
    maker === undefined
      ? `The package '${packageName}' has no single export that creates a provider. ${choices} (the adapter's 'provider').`
      : `The package '${packageName}' has no export '${maker}' that creates a provider. ${choices}.`,
  );
}

type AnyFunction = (...inputs: unknown[]) => unknown;

function isFunction(value: unknown): value is AnyFunction {
  return typeof value === "function";
}
