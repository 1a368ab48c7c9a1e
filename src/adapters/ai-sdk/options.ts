/** The options of the ai-sdk adapter. */
import { answerTimeouts, milliseconds } from "../type.ts";

export const options = {
  type: "object",
  required: ["package"],
  properties: {
    package: {
      type: "string",
      minLength: 1,
      description:
        "The provider's package, e.g. @ai-sdk/anthropic, installed beside the config file or the gateway: npm i <package>.",
    },
    provider: {
      type: "string",
      minLength: 1,
      description: "The package's export that creates the provider; if absent, its only `create…` function.",
    },
    options: {
      type: "object",
      patternProperties: { "^.*$": {} },
      description:
        "The arguments of that function: apiKey, baseURL, headers, name and whatever else the package accepts.",
    },
    provider_options: {
      type: "object",
      patternProperties: { "^.*$": { type: "object", patternProperties: { "^.*$": {} } } },
      description:
        'Provider options sent with every request, by the provider\'s name, e.g. {"anthropic": {"thinking": {…}}}.',
    },
    fetch_media: {
      type: "object",
      additionalProperties: false,
      default: {},
      description: "Images and files that callers reference by URL.",
      properties: {
        enabled: {
          type: "boolean",
          default: true,
          description:
            "Fetch images and files that the model does not accept by URL. Only public internet addresses are reached.",
        },
        max_count: {
          type: "integer",
          minimum: 0,
          maximum: 1_000,
          default: 16,
          description: "How many are fetched for one turn.",
        },
        max_bytes: {
          type: "integer",
          minimum: 1,
          default: 20 * 1024 * 1024,
          description: "The largest one, including those that come as data: URLs.",
        },
        timeout_ms: milliseconds("The longest that fetching one may take.", 10_000),
        allow_private: {
          anyOf: [{ type: "boolean" }, { type: "array", items: { type: "string" } }],
          default: false,
          description:
            "Addresses and networks (10.1.0.0/16) outside the public internet that may be reached; true: all.",
        },
      },
    },
    ...answerTimeouts,
  },
} as const;
