/** The module adapter, a file of the operator's own; and what modules and programs write, `async *stream(turn, signal, tell)`, as the gateway asks it. */
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { Adapter, Tell } from "../core/adapter.ts";
import { GatewayError } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import type { Dialect } from "../core/settings.ts";
import type { Turn } from "../core/turn.ts";
import { checkBatch, toFailure } from "./said.ts";
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
export async function createModule(settings: ModuleSettings): Promise<Adapter> {
  const { path, options } = settings;
  try {
    const { default: made } = await import(pathToFileURL(path).href);
    return toAdapter(checkAdapter(typeof made === "function" ? await made(options) : made), settings);
  } catch (cause) {
    throw new Error(`${path} cannot be used: ${describe(cause)}`, { cause });
  }
}

function checkAdapter(made: unknown): GivenAdapter {
  const adapter = Object(made);
  if (typeof adapter.stream === "function") return adapter;
  const wanted = "a function that returns an adapter, or the adapter: an object with the method stream";
  throw new Error(`Its default export must be ${wanted}.`);
}

/** The head of a syntax error's stack says where. */
function describe(thrown: unknown): string {
  const { message = String(thrown), stack = "" } = Object(thrown);
  return thrown instanceof SyntaxError ? `${message} (${stack.split("\n", 1)})` : message;
}

/** What it gets is its own and not the gateway's memory, what it says is checked, what it throws is explained, and nobody depends on it to stop. */
export function toAdapter(given: GivenAdapter, timeouts: Timeouts = {}): Adapter {
  const who = "the adapter's own code";
  return {
    speaks: given.speaks ?? [],
    open: (turn, caller, tell) =>
      openSource(who, (signal) => listen(given, turn, signal, tell), turn, timeouts, caller),
    countTokens: async (turn, signal) => inTime(given.countTokens?.(structuredClone(turn), signal)),
    ...(given.models && { models: async () => (await inTime(given.models?.())) ?? [] }),
    close: () => inTime(given.close?.()),
  };
}

async function* listen(given: GivenAdapter, turn: Turn, signal: AbortSignal, tell: Tell) {
  try {
    for await (const batch of given.stream(structuredClone(turn), signal, tell)) yield checkBatch(batch);
  } catch (thrown) {
    throw toFailure(thrown);
  }
}

/** Reloads, shutdowns and lists of models wait for it. */
const patienceMs = 5_000;

async function inTime<Value>(pending: Promise<Value> | undefined): Promise<Value | undefined> {
  const late = sleep(patienceMs, undefined, { ref: false }).then(() => {
    throw new GatewayError("adapter_timeout", `Timed out: the adapter's own code took more than ${patienceMs} ms.`);
  });
  return Promise.race([pending, late]).catch((thrown: unknown) => {
    throw toFailure(thrown);
  });
}
