/** The rest of the house as the commands see it, opened only by the commands that need it. */
import type { Config } from "../config/config.ts";
import type { AdapterOptions } from "../config/schema.ts";

export interface House {
  /** The options of every type of adapter. */
  adapterOptions(): Promise<AdapterOptions>;
  /** Builds the gateway, and listens. */
  open(config: Config): Promise<Running>;
}

export interface Running {
  /** The base URL; none when no endpoint is on. */
  readonly address: string | undefined;
  /** Lets running turns end, then closes everything. */
  close(): Promise<void>;
}

export const house: House = {
  async adapterOptions() {
    const { adapterOptions } = await import("../adapters/index.ts");
    return adapterOptions;
  },
  async open(config) {
    const { createPortico } = await import("../portico.ts");
    return createPortico(config);
  },
};
