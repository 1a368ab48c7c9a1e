/** Adds the adapters that an embedding program passes in to those of its settings, by name. */
import { adapterOptions } from "./adapters/index.ts";
import { isObject, mergeAt, valueAt } from "./config/path.ts";
import { misfit, problem, type Problems } from "./config/problem.ts";
import { closeAll } from "./core/closing.ts";
import type { Adapter } from "./core/ports.ts";

/** By the names that the settings use. */
export type GivenAdapters = Readonly<Record<string, Adapter>>;

/** The `type` of such an adapter in the settings. */
export const givenType = "given";

/** Settings that include the given adapters, and what else is needed to load them. */
export function withGiven(settings: object, given: GivenAdapters) {
  const without = { settings, adapterOptions };
  const names = Object.keys(given);
  if (names.length === 0) return without;
  const written = valueAt(settings, ["gateway", "adapters"]) ?? {};
  // Validation reports settings of the wrong type.
  if (!isObject(written)) return without;
  const adapters = { ...Object.fromEntries(names.map((name) => [name, { type: givenType }])), ...written };
  return {
    settings: mergeAt(settings, ["gateway"], { adapters }),
    adapterOptions: { ...adapterOptions, [givenType]: { type: "object", properties: {} } as const },
    problems: [...findProblems(given, written)],
  };
}

function* findProblems(given: Readonly<Record<string, unknown>>, written: Readonly<Record<string, unknown>>): Problems {
  for (const [name, adapter] of Object.entries(given)) {
    if (Object.hasOwn(written, name) && !isOfGiven(written[name])) {
      const why = `an adapter of this name is also passed beside the settings; choose another name for one of them, or write "type": "${givenType}" to configure the passed one`;
      yield problem(["gateway", "adapters", name], why);
    } else if (!isObject(adapter) || typeof adapter["stream"] !== "function") {
      yield misfit(["adapters", name], adapter, "an adapter, that is, an object with the method stream");
    }
  }
  for (const [name, settings] of Object.entries(written)) {
    if (!isOfGiven(settings) || Object.hasOwn(given, name)) continue;
    yield problem(["gateway", "adapters", name, "type"], "no adapter of this name is passed beside the settings");
  }
}

function isOfGiven(settings: unknown): boolean {
  return isObject(settings) && settings["type"] === givenType;
}

/** The named adapter, for a route: its output is checked, and closing the route (at a reload) does not close it. */
export async function findGiven(name: string, given: GivenAdapters): Promise<Adapter> {
  const adapter = Object.hasOwn(given, name) ? given[name] : undefined;
  if (adapter === undefined) throw new Error(`There is no adapter '${name}' among those passed.`);
  const { guardAdapter } = await import("./adapters/module/guard.ts");
  return { ...guardAdapter(adapter), close: undefined };
}

/** Closes each once, and all of them even if one fails. */
export async function closeGiven(given: GivenAdapters): Promise<void> {
  const { guardAdapter } = await import("./adapters/module/guard.ts");
  await closeAll(Array.from(new Set(Object.values(given)), (adapter) => guardAdapter(adapter)));
}
