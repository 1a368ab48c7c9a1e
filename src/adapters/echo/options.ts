/** The options of the echo adapter. */

export const options = {
  type: "object",
  properties: {
    delay_ms: {
      type: "integer",
      minimum: 0,
      maximum: 60_000,
      default: 0,
      description: "Milliseconds to pause before each word; 0 says everything at once.",
    },
  },
} as const;
