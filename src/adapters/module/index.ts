/** The module adapter: a file of the operator's own answers. */
import { defineAdapter } from "../type.ts";
import { guardAdapter } from "./guard.ts";
import { loadAdapter } from "./load.ts";
import type { options } from "./options.ts";

export const module = defineAdapter<typeof options>(({ path, options: own }) => guardAdapter(loadAdapter(path, own)));
