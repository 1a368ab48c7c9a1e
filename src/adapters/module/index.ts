/** The module adapter: a file of the operator's own answers. */
import { statSync } from "node:fs";
import { createRequire } from "node:module";
import type { Counting } from "../../core/route/lane.ts";
import type { Timeouts } from "../waiting.ts";
import { type GivenAdapter, toAdapter } from "./given.ts";

interface ModuleSettings extends Timeouts {
  readonly path: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Throws what is wrong with the file, so that a gateway with a broken module does not start. */
export function createModule(settings: ModuleSettings): Counting {
  const { path, options } = settings;
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) throw new Error(`There is no file ${path}.`);
  try {
    const exported = load(path);
    return toAdapter(checkAdapter(typeof exported === "function" ? exported(options) : exported), settings);
  } catch (cause) {
    throw new Error(`${path} cannot be used: ${describe(cause)}`, { cause });
  }
}

/** At once, although it is an ES module: these load as their namespace, CommonJS ones as what they export. */
function load(path: string): unknown {
  const loaded: unknown = createRequire(import.meta.url)(path);
  if (Object.prototype.toString.call(loaded) !== "[object Module]") return loaded;
  if ("default" in Object(loaded)) return Object(loaded).default;
  throw new Error(`It has no default export. ${wanted}`);
}

const wanted =
  "The default export must be a function that returns an adapter, or the adapter: an object with the method stream.";

function checkAdapter(made: unknown): GivenAdapter {
  if (made instanceof Promise)
    throw new Error("It must return its adapter at once, not a promise: defer slow work to the first turn.");
  const adapter = Object(made);
  if (typeof adapter.stream !== "function") throw new Error(wanted);
  for (const name of ["countTokens", "models", "close"])
    if (!["function", "undefined"].includes(typeof adapter[name])) throw new Error(`Its ${name} must be a function.`);
  return adapter;
}

function describe(thrown: unknown): string {
  const { code, message = String(thrown), stack = "" } = Object(thrown);
  if (code === "ERR_REQUIRE_ASYNC_MODULE")
    return "it, or something it imports, has a top-level await. Move that into stream.";
  if (!(thrown instanceof SyntaxError)) return message;
  // The head of its stack says where. `npm init` makes packages CommonJS.
  const remedy = /^(Unexpected token 'export'|Cannot use .* outside a module|await is only valid)/.test(message)
    ? ' If it is an ES module, rename it to end in .mts or .mjs, or set "type": "module" in its package.json.'
    : "";
  return `${message} (${stack.split("\n", 1)}).${remedy}`;
}
