/** The module adapter: the operator's own code answers. */
import type { Adapter } from "../../core/ports.ts";
import type { Complete } from "../../core/schema.ts";
import { toLimits } from "../type.ts";
import { guardAdapter } from "./guard.ts";
import { loadAdapter } from "./load.ts";
import type { options } from "./options.ts";

export function create(chosen: Complete<typeof options>): Adapter {
  return guardAdapter(loadAdapter(chosen.path, chosen.options), toLimits(chosen));
}
