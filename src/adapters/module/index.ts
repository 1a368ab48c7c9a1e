/** The module adapter: the operator's own code answers. */
import { defineAdapter, toLimits } from "../type.ts";
import { guardAdapter } from "./guard.ts";
import { loadAdapter } from "./load.ts";
import type { options } from "./options.ts";

export const module = defineAdapter<typeof options>((chosen) =>
  guardAdapter(loadAdapter(chosen.path, chosen.options), toLimits(chosen)),
);
