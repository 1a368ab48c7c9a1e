/** Creates the adapters that a configuration names, and the route to them. */
import { setTimeout as wait } from "node:timers/promises";
import { createAdapter } from "./adapters/index.ts";
import type { AdapterConfig, Config } from "./config/config.ts";
import type { Adapter } from "./core/ports.ts";
import { createModelNames } from "./core/route/models.ts";
import { createRoute, type Lane, type Route } from "./core/route/route.ts";
import type { Observer } from "./core/observer.ts";
import { findGiven, type GivenAdapters, givenType } from "./given.ts";
import { messageOf } from "./core/errors.ts";

/** All of them or, if one fails, none. */
export async function createAdapterRoute(
  config: Config,
  now: () => Date,
  observer: Observer,
  given: GivenAdapters,
): Promise<Route> {
  const lanes: Lane[] = [];
  try {
    for (const [name, chosen] of Object.entries(config.adapters)) {
      const { contextWindow, maxAnswerCharacters, fallback, retry, breaker } = chosen;
      const isGiven = chosen.type === givenType;
      const adapter = await (isGiven ? findGiven(name, given) : makeAdapter(name, chosen, config.file));
      const models = createModelNames(chosen);
      lanes.push({ name, adapter, models, contextWindow, maxAnswerCharacters, fallback, retry, breaker });
    }
    const { defaultAdapter: defaultLane, models: byModel } = config;
    return createRoute({ lanes, defaultLane, byModel, now, random: Math.random, wait: pause, observer });
  } catch (thrown) {
    await Promise.allSettled(lanes.map(async ({ adapter }) => adapter.close?.()));
    throw thrown;
  }
}

async function makeAdapter(name: string, chosen: AdapterConfig, configFile: string | undefined): Promise<Adapter> {
  try {
    return await createAdapter(chosen, configFile);
  } catch (thrown) {
    throw new Error(`The adapter '${name}' cannot be used: ${messageOf(thrown)}`, { cause: thrown });
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return wait(milliseconds, undefined, { signal });
}
