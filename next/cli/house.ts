/** The rest of the house as commands use it, loaded only by those that need it. */
import type { Config } from "../config/config.ts";
import { ConfigError, problem, type Problem } from "../config/problem.ts";
import type { Adapter } from "../core/adapter.ts";
import type { Operator } from "../core/store.ts";

export interface Running {
  /** Where it listens; undefined if both endpoints are off. */
  readonly address: string | undefined;
  readonly log: { error(fields: object, message: string): void };
  reload(config: Config): Promise<void>;
  close(): Promise<void>;
}

export interface ColdStore extends Operator {
  close(): Promise<void>;
}

interface Root {
  startPortico(config: Config): Promise<Running>;
  /** One of the configuration's adapters; throws if it cannot be made. */
  makeAdapter(config: Config, name: string): Promise<Adapter>;
  /** The store beside a gateway that may run on it. */
  openCold(file: string): Promise<ColdStore>;
}

const load = async (): Promise<Root> => (await import("../portico.ts")) as unknown as Root;

export async function startGateway(config: Config): Promise<Running> {
  return (await load()).startPortico(config);
}

export async function makeAdapter(config: Config, name: string): Promise<Adapter> {
  return (await load()).makeAdapter(config, name);
}

export async function openCold(file: string): Promise<ColdStore> {
  return (await load()).openCold(file);
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
