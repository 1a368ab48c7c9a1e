/** The module adapter: a file of the operator's own answers. */
import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { isObject } from "../../wires/fields.ts";
import type { Timeouts } from "../waiting.ts";
import { type GivenAdapter, toAdapter } from "./given.ts";

export interface ModuleSettings extends Timeouts {
  readonly path: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Throws what is wrong with the file, so that a gateway with a broken module does not start. */
export function createModule(settings: ModuleSettings) {
  const { path, options } = settings;
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) throw new Error(`There is no file ${path}.`);
  try {
    return toAdapter(checkAdapter(makeAdapter(load(path), options)), settings);
  } catch (cause) {
    throw new Error(`${path} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** At once, although it is an ES module. */
function load(path: string): unknown {
  try {
    const loaded: unknown = createRequire(import.meta.url)(path);
    // ES modules load as their namespace, CommonJS ones as what they export.
    const isNamespace = Object.prototype.toString.call(loaded) === "[object Module]";
    return isNamespace && isObject(loaded) ? loaded["default"] : loaded;
  } catch (cause) {
    throw new Error(describe(cause), { cause });
  }
}

function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if ("code" in thrown && thrown.code === "ERR_REQUIRE_ASYNC_MODULE")
    return "it, or something it imports, has a top-level await. Move that into stream.";
  if (!(thrown instanceof SyntaxError)) return thrown.message;
  // The head of its stack says where.
  const [place = ""] = (thrown.stack ?? "").split("\n", 1);
  const remedy = foreignToCommonJs.test(thrown.message)
    ? ' If it is an ES module, rename it to end in .mts or .mjs, or set "type": "module" in its package.json.'
    : "";
  return `${thrown.message} (${place}).${remedy}`;
}

/** `npm init` makes packages CommonJS. */
const foreignToCommonJs = /^(Unexpected token 'export'|Cannot use .* outside a module|await is only valid)/;

function makeAdapter(exported: unknown, options: ModuleSettings["options"]): unknown {
  if (exported === undefined) throw new Error(`It has no default export. ${remedy}`);
  const made: unknown = typeof exported === "function" ? exported(options) : exported;
  if (made instanceof Promise)
    throw new Error("It must return its adapter at once, not a promise: defer slow work to the first turn.");
  return made;
}

const remedy =
  "The default export must be a function that returns an adapter, or the adapter: an object with the method stream.";

function checkAdapter(made: unknown): GivenAdapter {
  if (typeof made !== "object" || made === null || !("stream" in made) || typeof made.stream !== "function")
    throw new Error(remedy);
  const adapter = made as GivenAdapter & Readonly<Record<string, unknown>>;
  for (const name of ["contextWindow", "countTokens", "models", "close"]) {
    const member = adapter[name] ?? undefined;
    if (member !== undefined && typeof member !== "function") throw new Error(`Its ${name} must be a function.`);
  }
  const speaks: unknown = adapter.speaks ?? [];
  if (!Array.isArray(speaks) || !speaks.every((dialect) => dialect === "chat" || dialect === "responses"))
    throw new Error('Its speaks must be a list of "chat" and "responses".');
  return adapter;
}
