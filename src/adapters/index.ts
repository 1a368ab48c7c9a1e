/** Every kind of adapter, by the `type` that a configuration names. A new one is a folder and its lines here. */
import { options as aiSdk } from "./ai-sdk/options.ts";
import { options as command } from "./command/options.ts";
import { options as echo } from "./echo/options.ts";
import { options as module } from "./module/options.ts";
import { options as openai } from "./openai/options.ts";
import type { AdapterType } from "./type.ts";

export const adapterTypes: Readonly<Record<string, AdapterType>> = {
  echo: { options: echo, load: async () => (await import("./echo/index.ts")).echo },
  openai: { options: openai, load: async () => (await import("./openai/index.ts")).openai },
  command: { options: command, load: async () => (await import("./command/index.ts")).command },
  module: { options: module, load: async () => (await import("./module/index.ts")).module },
  "ai-sdk": { options: aiSdk, load: async () => (await import("./ai-sdk/index.ts")).aiSdk },
};

/** The schema of each kind's own options, against which a configuration is held. */
export const adapterOptions = Object.fromEntries(
  Object.entries(adapterTypes).map(([name, type]) => [name, type.options]),
);
