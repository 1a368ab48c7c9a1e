/** The table of adapter kinds, by the `type` in a configuration. A new one is a folder and its lines here. */
import { dirname } from "node:path";
import { options as aiSdk } from "./ai-sdk/options.ts";
import { options as command } from "./command/options.ts";
import { options as echo } from "./echo/options.ts";
import { options as module } from "./module/options.ts";
import { options as openai } from "./openai/options.ts";
import type { Adapter } from "../core/ports.ts";
import type { AdapterType } from "./type.ts";

export const adapterTypes = {
  echo: { options: echo, load: () => import("./echo/index.ts") },
  openai: { options: openai, load: () => import("./openai/index.ts") },
  command: { options: command, load: () => import("./command/index.ts") },
  module: { options: module, load: () => import("./module/index.ts") },
  "ai-sdk": { options: aiSdk, load: () => import("./ai-sdk/index.ts") },
} satisfies Types;

type Types = Readonly<Record<string, AdapterType>>;

/** Creates the adapter that validated settings describe; their relative paths start from the config file. */
export async function createAdapter(chosen: AdapterChoice, configFile: string | undefined): Promise<Adapter> {
  const { type, options } = chosen;
  const types: Types = adapterTypes;
  const kind = types[type];
  if (kind === undefined) throw new Error(`There is no adapter of the type '${type}'.`);
  const maker = await kind.load();
  return maker.create(options, process.env, configFile === undefined ? process.cwd() : dirname(configFile));
}

/** Loads the code of the kinds that settings name. What cannot be loaded is told where an adapter is made of it. */
export async function loadAdapters(chosen: Readonly<Record<string, Pick<AdapterChoice, "type">>>): Promise<void> {
  const types: Types = adapterTypes;
  await Promise.allSettled(Object.values(chosen).map(({ type }) => types[type]?.load()));
}

interface AdapterChoice {
  readonly type: string;
  readonly options: unknown;
}

/** The schema of each kind's options, to validate a configuration with. */
export const adapterOptions = Object.fromEntries(
  Object.entries(adapterTypes).map(([name, type]) => [name, type.options]),
);
