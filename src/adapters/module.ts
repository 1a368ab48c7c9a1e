/** The module adapter, a file of the operator's own; and what modules and programs write, `async *stream(turn, signal, tell)`, as the gateway asks it. */
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { Remark, Tell } from "../core/adapter.ts";
import { GatewayError } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import type { Counting } from "../core/route/lane.ts";
import type { Dialect } from "../core/settings.ts";
import type { Turn } from "../core/turn.ts";
import { checkBatch, count, toFailure, unfit } from "./said.ts";
import { openSource, type Timeouts } from "./waiting.ts";

/** What a module exports, and a program passes in. */
export interface GivenAdapter {
  stream(turn: Turn, signal: AbortSignal, tell?: Tell): AsyncIterable<readonly Delta[]>;
  /** The wire dialects whose own tools and fields it passes on. */
  readonly speaks?: readonly Dialect[] | undefined;
  countTokens?(turn: Turn, signal: AbortSignal): Promise<number | undefined>;
  models?(): Promise<readonly string[]>;
  close?(): Promise<void>;
}

interface ModuleSettings extends Timeouts {
  readonly path: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Throws what is wrong with the file, so that a gateway with a broken module does not start. */
export async function createModule(settings: ModuleSettings): Promise<Counting> {
  const { path, options } = settings;
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) throw new Error(`There is no file ${path}.`);
  try {
    const { default: made } = await import(pathToFileURL(path).href);
    return toAdapter(checkAdapter(typeof made === "function" ? await made(options) : made), settings);
  } catch (cause) {
    throw new Error(`${path} cannot be used: ${describe(cause)}`, { cause });
  }
}

function checkAdapter(made: unknown): GivenAdapter {
  const adapter = Object(made);
  if (typeof adapter.stream !== "function") {
    const wanted = "a function that returns an adapter, or the adapter: an object with the method stream";
    throw new Error(`Its default export must be ${wanted}.`);
  }
  for (const name of ["countTokens", "models", "close"])
    if (!["function", "undefined"].includes(typeof adapter[name])) throw new Error(`Its ${name} must be a function.`);
  return adapter;
}

/** The head of a syntax error's stack says where. `npm init` makes packages CommonJS. */
function describe(thrown: unknown): string {
  const { message = String(thrown), stack = "" } = Object(thrown);
  if (!(thrown instanceof SyntaxError)) return message;
  const remedy = /^(Unexpected token 'export'|Cannot use .* outside a module)/.test(message)
    ? ' If it is an ES module, rename it to end in .mts or .mjs, or set "type": "module" in its package.json.'
    : "";
  return `${message} (${stack.split("\n", 1)}).${remedy}`;
}

/** What it gets is its own and not the gateway's memory, what it says is checked, what it throws is explained, and nobody depends on it to stop. */
export function toAdapter(given: GivenAdapter, timeouts: Timeouts = {}): Counting {
  const who = "the adapter's own code";
  return {
    speaks: given.speaks ?? [],
    open: (turn, caller, tell) =>
      openSource(who, (signal) => listen(given, turn, signal, tell), turn, timeouts, caller),
    countTokens: async (turn, signal) => checkCount(await inTime(given.countTokens?.(structuredClone(turn), signal))),
    ...(given.models && { models: async () => checkNames((await inTime(given.models?.())) ?? []) }),
    close: () => inTime(given.close?.()),
  };
}

async function* listen(given: GivenAdapter, turn: Turn, signal: AbortSignal, tell: Tell) {
  try {
    const batches = given.stream(structuredClone(turn), signal, (remark) => tell(checkRemark(remark)));
    if (typeof batches?.[Symbol.asyncIterator] !== "function")
      throw unfit("is no async generator, as of async *stream(turn, signal)", batches);
    for await (const batch of batches) yield checkBatch(batch);
  } catch (thrown) {
    throw toFailure(thrown);
  }
}

function checkRemark(remark: Remark): Remark {
  const { type, what, to } = Object(remark);
  if (typeof what === "string" && (type === "left-out" || (type === "changed" && typeof to === "string")))
    return remark;
  throw unfit("is not what it leaves out or changes", remark);
}

function checkCount(found: number | undefined): number | undefined {
  if ((found ?? undefined) === undefined || count(found) !== undefined) return found ?? undefined;
  throw unfit("is no number of tokens", found);
}

function checkNames(found: readonly string[]): readonly string[] {
  if (Array.isArray(found) && found.every((name) => typeof name === "string")) return found;
  throw unfit("is no list of models", found);
}

/** Reloads, shutdowns and lists of models wait for it. */
const patienceMs = 5_000;

async function inTime<Value>(pending: Promise<Value> | undefined): Promise<Value | undefined> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const message = `Timed out: the adapter's own code took more than ${patienceMs / 1_000} s.`;
  const timer = setTimeout(() => reject(new GatewayError("adapter_timeout", message)), patienceMs);
  try {
    return await Promise.race([pending, late]);
  } catch (thrown) {
    throw toFailure(thrown);
  } finally {
    clearTimeout(timer);
  }
}
