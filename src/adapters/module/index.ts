/** The module adapter: the operator's own code answers. */
import { defineAdapter } from "../type.ts";
import { guardAdapter } from "./guard.ts";
import { loadAdapter } from "./load.ts";
import type { options } from "./options.ts";

export const module = defineAdapter<typeof options>((chosen) =>
  guardAdapter(loadAdapter(chosen.path, chosen.options), {
    firstByteMs: chosen.first_byte_timeout_ms,
    idleMs: chosen.idle_timeout_ms,
    totalMs: chosen.total_timeout_ms,
  }),
);
