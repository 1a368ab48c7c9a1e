/** The options of the module adapter. */
import { answerTimeouts } from "../type.ts";

export const options = {
  type: "object",
  required: ["path"],
  properties: {
    path: {
      type: "string",
      minLength: 1,
      format: "path",
      description: "The JavaScript or TypeScript file whose default export creates the adapter.",
    },
    options: {
      type: "object",
      patternProperties: { "^.*$": {} },
      default: {},
      description: "The arguments of the file's function.",
    },
    ...answerTimeouts,
  },
} as const;
