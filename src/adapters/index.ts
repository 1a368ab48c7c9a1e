/** Every kind of adapter, by the `type` that a configuration names. A new one is a folder and a line here. */
import { aiSdk } from "./ai-sdk/index.ts";
import { command } from "./command/index.ts";
import { echo } from "./echo/index.ts";
import { module } from "./module/index.ts";
import { openai } from "./openai/index.ts";
import type { AdapterType } from "./type.ts";

export const adapterTypes: Readonly<Record<string, AdapterType>> = { echo, openai, command, module, "ai-sdk": aiSdk };

/** The schema of each kind's own options, against which a configuration is held. */
export const adapterOptions = Object.fromEntries(
  Object.entries(adapterTypes).map(([name, type]) => [name, type.options]),
);
