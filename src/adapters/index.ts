/** The table of adapters by the `type` in a configuration; their code is loaded only when it is needed. A new kind is a folder and its line here. */
import type { Counting } from "../core/route/lane.ts";

export interface Surroundings {
  readonly environment: NodeJS.ProcessEnv;
  /** That of the config file: where packages are looked for. */
  readonly folder: string;
}

// The settings of each kind have been checked, and are complete.
type Create = (settings: never, environment: NodeJS.ProcessEnv, folder: string) => Counting | Promise<Counting>;

const kinds: Readonly<Record<string, () => Promise<Create>>> = {
  openai: async () => (await import("./openai.ts")).createOpenai,
  "ai-sdk": async () => (await import("./ai-sdk/index.ts")).createAiSdk,
  command: async () => (await import("./command/index.ts")).createCommand,
  module: async () => (await import("./module.ts")).createModule,
  echo: async () => (await import("./echo/index.ts")).createEcho,
};

/** `settings`: the keys of its type and the common ones, as in the file. Throws what is wrong, in words for the operator. */
export async function createAdapter(type: string, settings: object, around: Surroundings): Promise<Counting> {
  const load = Object.hasOwn(kinds, type) ? kinds[type] : undefined;
  if (load === undefined) throw new Error(`There is no adapter of the type '${type}'.`);
  const create = await load();
  return create(settings as never, around.environment, around.folder);
}
