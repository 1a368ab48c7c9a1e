/** Makes the way to the adapters that a configuration names, and to those that a program passes in. */
import { setTimeout as wait } from "node:timers/promises";
import { createAdapter } from "./adapters/index.ts";
import { type GivenAdapter, toAdapter } from "./adapters/module/given.ts";
import type { AdapterConfig, Config } from "./config/config.ts";
import type { Adapter } from "./core/adapter.ts";
import type { Lane } from "./core/route/lane.ts";
import { createRoute, type Route } from "./core/route/route.ts";

export interface LaneParts {
  readonly given: Readonly<Record<string, GivenAdapter>>;
  readonly now: () => number;
  /** The same adapter, watched under its name. */
  readonly watch: <Kind extends Adapter>(name: string, adapter: Kind) => Kind;
}

/** Throws what is wrong with the first adapter that cannot be made; those before it are closed again. */
export async function openRoute(config: Config, { given, now, watch }: LaneParts): Promise<Route> {
  const lanes: Lane[] = [];
  try {
    for (const [name, adapter] of Object.entries(config.adapters)) lanes.push(await toLane(name, adapter));
  } catch (thrown) {
    await Promise.allSettled(lanes.map(async (lane) => lane.adapter.close?.()));
    throw thrown;
  }
  return createRoute({
    lanes,
    defaultLane: config.defaultAdapter,
    byModel: config.models,
    now,
    random: Math.random,
    wait: (ms, signal) => wait(ms, undefined, { signal }),
  });

  async function toLane(name: string, { type, own, model, models, contextWindow, fallback, retries }: AdapterConfig) {
    const passed = Object.hasOwn(given, name) ? given[name] : undefined;
    const around = { environment: process.env, folder: config.folder };
    const made = passed === undefined ? await make(name, () => createAdapter(type, own, around)) : toGiven(passed);
    const hasBreaker = passed === undefined;
    return { name, adapter: watch(name, made), model, models, contextWindow, fallback, retries, hasBreaker };
  }
}

/** Says which adapter could not be made. */
async function make<Made>(name: string, create: () => Promise<Made>): Promise<Made> {
  try {
    return await create();
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new Error(`gateway.adapters.${name}: ${why}`, { cause: thrown });
  }
}

/** Reloading must not close what the program passed in. */
const toGiven = (passed: GivenAdapter) => ({ ...toAdapter(passed), close: undefined });
