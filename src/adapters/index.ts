/** The table of adapters by the `type` in a configuration; their code is loaded only when it is needed. A new kind is a folder and its line here. */
import type { Adapter } from "../core/adapter.ts";

// The settings of each kind have been checked, and are complete. The folder is that of the config file.
type Create = (settings: never, environment: NodeJS.ProcessEnv, folder: string) => Adapter | Promise<Adapter>;

const kinds = {
  openai: async () => (await import("./openai.ts")).createOpenai,
  "ai-sdk": async () => (await import("./ai-sdk/index.ts")).createAiSdk,
  command: async () => (await import("./command/index.ts")).createCommand,
  module: async () => (await import("./module.ts")).createModule,
  echo: async () => (await import("./echo/index.ts")).createEcho,
} satisfies Record<string, () => Promise<Create>>;

/** `settings`: the keys of its type and the common ones, as in the file. Throws what is wrong, in words for the operator. */
export async function createAdapter(
  type: string,
  settings: object,
  { environment, folder }: { readonly environment: NodeJS.ProcessEnv; readonly folder: string },
): Promise<Adapter> {
  const create: Create = await kinds[type as keyof typeof kinds]();
  return create(settings as never, environment, folder);
}
