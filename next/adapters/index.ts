/** Makes the adapter that checked settings describe; its code is loaded only when it is needed. A new kind is a folder and its lines here. */
import type { Adapter } from "../core/adapter.ts";
import type { OpenaiSettings } from "./openai/index.ts";

export type AdapterSettings = { readonly type: "openai" } & OpenaiSettings;

export async function createAdapter(settings: AdapterSettings, environment: NodeJS.ProcessEnv): Promise<Adapter> {
  switch (settings.type) {
    case "openai":
      return (await import("./openai/index.ts")).createOpenai(settings, environment);
  }
}
