/** The rest of the house as commands use it, loaded only by those that need it. */
import type { Config } from "../config/config.ts";
import { ConfigError, problem, type Problem } from "../config/problem.ts";
import type { Adapter } from "../core/adapter.ts";
import type { Portico } from "../portico.ts";
import type { ColdStore } from "../store/beside.ts";

export type { ColdStore } from "../store/beside.ts";
export type Running = Pick<Portico, "address" | "log" | "reload" | "close">;

export async function startGateway(config: Config): Promise<Running> {
  return (await import("../portico.ts")).startPortico(config);
}

/** The store beside a gateway that may run on it; made if there is none. */
export async function openCold(file: string): Promise<ColdStore> {
  return (await import("../store/beside.ts")).openCold(file);
}

/** One of the configuration's adapters; throws if it cannot be made. */
export async function makeAdapter({ adapters, folder }: Config, name: string): Promise<Adapter> {
  const { createAdapter } = await import("../adapters/index.ts");
  const { type = "", own = {} } = adapters[name] ?? {};
  return createAdapter(type, own, { environment: process.env, folder });
}

/** Makes every adapter, and closes it again; throws a ConfigError with those that cannot be made. */
export async function tryAdapters(config: Config): Promise<void> {
  const problems: Problem[] = [];
  for (const name of Object.keys(config.adapters)) {
    try {
      const adapter = await makeAdapter(config, name);
      await adapter.close?.();
    } catch (thrown) {
      problems.push(problem(["gateway", "adapters", name], messageOf(thrown)));
    }
  }
  if (problems.length > 0) throw new ConfigError(problems, config.file);
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
