/** The options of the ai-sdk adapter. */
import { defaultMaxBytes } from "../media/limits.ts";
import { answerTimeouts, milliseconds } from "../type.ts";

export const options = {
  type: "object",
  required: ["package"],
  properties: {
    package: {
      type: "string",
      minLength: 1,
      description:
        "The provider's package, e.g. @ai-sdk/anthropic. Install it where the gateway runs: npm i <package>.",
    },
    provider: {
      type: "string",
      minLength: 1,
      description: "The package's export that makes the provider. Absent: the only one whose name begins with create.",
    },
    options: {
      type: "object",
      patternProperties: { "^.*$": {} },
      description: "What that function is given: apiKey, baseURL, headers, name and what else the package knows.",
    },
    provider_options: {
      type: "object",
      patternProperties: { "^.*$": { type: "object", patternProperties: { "^.*$": {} } } },
      description: 'Given with every turn, by the provider\'s name, e.g. {"anthropic": {"thinking": {…}}}.',
    },
    fetch_media: {
      type: "object",
      additionalProperties: false,
      default: {},
      description: "Images and files that callers name by their URLs.",
      properties: {
        enabled: { type: "boolean", default: true, description: "Fetch what the model does not take by its URL." },
        max_count: { type: "integer", minimum: 0, maximum: 1_000, default: 16, description: "How many for one turn." },
        max_bytes: {
          type: "integer",
          minimum: 1,
          default: defaultMaxBytes,
          description: "The largest one, also of those that come as data: URLs.",
        },
        timeout_ms: milliseconds("The longest that fetching one may take.", 10_000),
        allow_private: {
          anyOf: [{ type: "boolean" }, { type: "array", items: { type: "string" } }],
          default: false,
          description:
            "Addresses and networks (10.1.0.0/16) beside those of the public internet that may be reached; true: all.",
        },
      },
    },
    ...answerTimeouts,
  },
} as const;
