/** Kinds of values that stand at many keys. */

/** An object with no other keys than these. */
export const closed = { additionalProperties: false } as const;
const maxTimerMs = 2_147_483_647;

/** A number of things. */
export function count(fallback: number, description: string, minimum = 1) {
  return { type: "integer", minimum, maximum: 2_147_483_647, default: fallback, description } as const;
}

export function milliseconds(fallback: number, description: string, minimum = 1) {
  return { type: "integer", minimum, maximum: maxTimerMs, default: fallback, description } as const;
}

/** A time in words, e.g. `30d`. */
export function duration(fallback: string, description: string) {
  return {
    type: "string",
    pattern: "^(never|[1-9][0-9]{0,5}(s|m|h|d))$",
    title: 'a time like "90s", "15m", "24h" or "30d", or "never"',
    default: fallback,
    description,
  } as const;
}
