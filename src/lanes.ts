/** Makes the adapters that a configuration names, and takes those that a program passes in. */
import { createAdapter } from "./adapters/index.ts";
import type { GivenAdapter } from "./adapters/module.ts";
import type { AdapterConfig, Config } from "./config/config.ts";
import { ConfigError, problem, type Problem } from "./config/problem.ts";
import type { Adapter } from "./core/adapter.ts";
import type { Lane } from "./core/route/lane.ts";

/** The same adapter, watched under its name. */
type Watch = <Kind extends Adapter>(name: string, adapter: Kind) => Kind;

/** Throws a ConfigError with every adapter that cannot be made; the others are closed again. */
export async function openLanes(
  { adapters, folder, file }: Config,
  given: Readonly<Record<string, GivenAdapter>> = {},
  watch: Watch = (_name, adapter) => adapter,
): Promise<readonly Lane[]> {
  const lanes: Lane[] = [];
  const problems: Problem[] = [];
  for (const [name, adapter] of Object.entries(adapters)) {
    try {
      lanes.push(await toLane(name, adapter));
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      problems.push(problem(["gateway", "adapters", name], why));
    }
  }
  if (problems.length === 0) return lanes;
  await Promise.allSettled(lanes.map(async ({ adapter }) => adapter.close?.()));
  throw new ConfigError(problems, file);

  async function toLane(name: string, settings: AdapterConfig): Promise<Lane> {
    const { type, own, model, models, contextWindow, fallback, retries } = settings;
    const common = { name, model, models, contextWindow, fallback, retries };
    const passed = Object.hasOwn(given, name) ? given[name] : undefined;
    if (passed === undefined) {
      const adapter = await createAdapter(type, own, { environment: process.env, folder });
      return { ...common, adapter: watch(name, adapter), hasBreaker: true };
    }
    const { toAdapter } = await import("./adapters/module.ts");
    // Reloading must not close what the program passed in.
    const adapter = { ...toAdapter(passed), close: undefined };
    return { ...common, adapter: watch(name, adapter), hasBreaker: false };
  }
}
