/** Loads an operator's file and the adapter that it exports, or says what is wrong with the file. */
import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import type { Adapter } from "../../core/ports.ts";
import { codeOf } from "../../core/errors.ts";

/**
 * Loads synchronously, although it is an ES module, so that a gateway with a broken adapter does not start. The default
 * export is a function of the options, or the adapter itself.
 */
export function loadAdapter(path: string, options: Readonly<Record<string, unknown>>): Adapter {
  const file = resolve(path);
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw new Error(`There is no file ${file} (option path).`);
  const exported = readDefault(file);
  const made = typeof exported === "function" ? callExported(file, exported, options) : exported;
  if (made instanceof Promise) {
    throw new Error(`${file} must return its adapter at once, not a promise: defer slow work to the first turn.`);
  }
  if (isAdapter(made)) return checkAdapter(file, made);
  if (typeof exported === "function") {
    throw new Error(`The function that ${file} exports must return an adapter: an object with the method stream.`);
  }
  throw new Error(
    exported === undefined
      ? `${file} has no default export. Export a function: export default (options) => ({ async *stream(turn, signal) { … } }).`
      : `The default export of ${file} must be a function that returns an adapter, or an object with the method stream.`,
  );
}

function readDefault(file: string): unknown {
  const loaded = load(file);
  // ES modules load as their namespace, CommonJS ones as `module.exports`.
  return isEsModule(loaded) ? loaded["default"] : loaded;
}

function load(file: string): unknown {
  try {
    return createRequire(import.meta.url)(file);
  } catch (cause) {
    const why =
      codeOf(cause) === "ERR_REQUIRE_ASYNC_MODULE"
        ? "it, or something it imports, has a top-level await. Move that into stream."
        : (describeCommonJs(cause) ?? describe(cause));
    throw new Error(`${file} cannot be loaded: ${why}`, { cause });
  }
}

type Make = (options: Readonly<Record<string, unknown>>) => unknown;

function callExported(file: string, make: unknown, options: Readonly<Record<string, unknown>>): unknown {
  try {
    return (make as Make)(options);
  } catch (cause) {
    throw new Error(`The function that ${file} exports failed: ${describe(cause)}`, { cause });
  }
}

/** Bundlers give the same mark to the exports of an ES module that they turn into CommonJS. */
function isEsModule(loaded: unknown): loaded is Readonly<Record<string, unknown>> {
  return typeof loaded === "object" && loaded !== null && Object.prototype.toString.call(loaded) === "[object Module]";
}

function isAdapter(value: unknown): value is Adapter {
  return typeof value === "object" && value !== null && "stream" in value && typeof value.stream === "function";
}

/** Mistakes that are certain are reported now, not at the first turn. */
function checkAdapter(file: string, adapter: Adapter): Adapter {
  const speaks: unknown = adapter.speaks ?? [];
  if (!Array.isArray(speaks) || !speaks.every((dialect) => dialect === "chat" || dialect === "responses")) {
    throw new Error(`In the adapter of ${file}, speaks must be a list of "chat" and "responses".`);
  }
  for (const name of ["contextWindow", "countTokens", "models", "close"] as const) {
    const method: unknown = adapter[name] ?? undefined;
    if (method !== undefined && typeof method !== "function") {
      throw new Error(`In the adapter of ${file}, ${name} must be a function, or absent.`);
    }
  }
  return adapter;
}

/** Only the head of its stack says where a syntax error is. */
function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const head = headOf(thrown);
  return thrown instanceof SyntaxError && head.startsWith("file:") ? `${thrown.message} (${head})` : thrown.message;
}

/** `npm init` makes packages CommonJS; an ES module there is right but for its file name. */
function describeCommonJs(thrown: unknown): string | undefined {
  if (!(thrown instanceof SyntaxError) || !foreignToCommonJs.test(thrown.message)) return undefined;
  const [, file = "", kind = ""] = /^(?!file:)(.+\.(c?[jt])s):\d+$/.exec(headOf(thrown)) ?? [];
  if (file === "") return undefined;
  const setting = kind.startsWith("c") ? "" : ', or set "type": "module" in its package.json';
  return `${thrown.message}. ${file} is an ES module but is read as CommonJS: rename it to end in .m${kind.at(-1)}s${setting}.`;
}

const foreignToCommonJs = /^(Unexpected token 'export'|Cannot use .* outside a module|await is only valid)/;

function headOf({ stack }: Error): string {
  return stack?.split("\n", 1)[0] ?? "";
}
