/** The ai-sdk adapter: any provider package of the AI SDK that the operator has installed. */
import { type Static, Type } from "typebox";
import type { SharedV3ProviderOptions } from "@ai-sdk/provider";
import type { Delta } from "../../core/delta.ts";
import type { GatewayError } from "../../core/errors.ts";
import type { Adapter } from "../../core/ports.ts";
import { defineAdapter, milliseconds } from "../type.ts";
import { defaultMaxBytes } from "../media/limits.ts";
import { createReach } from "../media/reach.ts";
import { createSecretScrubber, toFailure } from "./failure.ts";
import { fetchFiles, type MediaRules } from "./media.ts";
import { readParts } from "./parts.ts";
import { createProvider } from "./provider.ts";
import { createReplyReader } from "./reply.ts";
import { writeRequest } from "./request.ts";
import { type StreamPart, toVersion } from "./spec.ts";

const options = Type.Object({
  package: Type.String({
    minLength: 1,
    description: "The provider's package, e.g. @ai-sdk/anthropic. Install it where the gateway runs: npm i <package>.",
  }),
  provider: Type.Optional(
    Type.String({
      minLength: 1,
      description: "The package's export that makes the provider. Absent: the only one whose name begins with create.",
    }),
  ),
  options: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: "What that function is given: apiKey, baseURL, headers, name and what else the package knows.",
    }),
  ),
  provider_options: Type.Optional(
    Type.Record(Type.String(), Type.Record(Type.String(), Type.Unknown()), {
      description: 'Given with every turn, by the provider\'s name, e.g. {"anthropic": {"thinking": {…}}}.',
    }),
  ),
  fetch_media: Type.Optional(
    Type.Object(
      {
        enabled: Type.Optional(
          Type.Boolean({ default: true, description: "Fetch what the model does not take by its URL." }),
        ),
        max_count: Type.Optional(
          Type.Integer({ minimum: 0, maximum: 1_000, default: 16, description: "How many for one turn." }),
        ),
        max_bytes: Type.Optional(
          Type.Integer({
            minimum: 1,
            default: defaultMaxBytes,
            description: "The largest one, also of those that come as data: URLs.",
          }),
        ),
        timeout_ms: milliseconds("The longest that fetching one may take.", 10_000),
        allow_private: Type.Optional(
          Type.Union([Type.Boolean(), Type.Array(Type.String())], {
            default: false,
            description:
              "Addresses and networks (10.1.0.0/16) beside those of the public internet that may be reached; true: all.",
          }),
        ),
      },
      { additionalProperties: false, default: {}, description: "Images and files that callers name by their URLs." },
    ),
  ),
  first_byte_timeout_ms: milliseconds("The longest wait for the first byte of an answer's body.", 120_000),
  idle_timeout_ms: milliseconds("The longest silence within an answer.", 120_000),
  total_timeout_ms: milliseconds("The longest that a whole answer may take. Streams have no such limit.", 600_000),
});

export const aiSdk = defineAdapter(options, (chosen, { folder }) => createAiSdk(chosen, process.env, folder));

/** The same with an environment and a folder of the maker's choice; packages are looked for from that folder. */
export function createAiSdk(
  chosen: Static<typeof options>,
  environment: Readonly<Record<string, string | undefined>>,
  folder: string,
): Adapter {
  const { package: packageName, options: given = {}, total_timeout_ms: totalMs = 600_000 } = chosen;
  const provider = createProvider({ packageName, maker: chosen.provider, options: given, folder });
  const scrub = createSecretScrubber(given, environment);
  // It came out of JSON; the provider checks its own part of it.
  const providerOptions = (chosen.provider_options ?? {}) as SharedV3ProviderOptions;
  const media = toMediaRules(chosen);
  const explain = (thrown: unknown) => toFailure(thrown, packageName, scrub);

  return {
    async *stream(turn, signal, tell) {
      const leaveOut = (what: string) => tell?.({ type: "left-out", what });
      const custom = new Set(turn.settings.tools.flatMap((tool) => (tool.type === "custom" ? [tool.name] : [])));
      const reply = createReplyReader({ isCustom: (name) => custom.has(name), leaveOut });
      const limits = {
        firstByteMs: chosen.first_byte_timeout_ms ?? 120_000,
        idleMs: chosen.idle_timeout_ms ?? 120_000,
        totalMs: turn.stream ? undefined : totalMs,
        address: packageName,
      };
      const open = async (abortSignal: AbortSignal) => {
        const model = await provider.model(turn.model);
        const rules = { ...media, param: turn.settings.native?.dialect === "responses" ? "input" : "messages" };
        const call = writeRequest(turn, model, providerOptions, leaveOut, rules);
        const prompt = await fetchFiles(call.prompt, model, rules, leaveOut, abortSignal);
        return model.doStream(toVersion({ ...call, prompt, abortSignal }, model.specificationVersion));
      };
      try {
        for await (const parts of readParts(open, limits, signal)) {
          const { deltas, failure } = hearAll(parts);
          if (deltas.length > 0) yield deltas;
          if (failure !== undefined) throw failure;
        }
        reply.end();
      } catch (thrown) {
        throw explain(thrown);
      }

      /** What was said before a failure is told before it. */
      function hearAll(parts: readonly StreamPart[]): { deltas: readonly Delta[]; failure?: GatewayError } {
        const deltas: Delta[] = [];
        try {
          for (const part of parts) {
            if (part.type === "error") return { deltas, failure: explain(part.error) };
            reply.hear(part, deltas);
          }
        } catch (thrown) {
          return { deltas, failure: explain(thrown) };
        }
        return { deltas };
      }
    },
  };
}

function toMediaRules({ fetch_media: chosen = {} }: Static<typeof options>): MediaRules {
  const allowPrivate = chosen.allow_private ?? false;
  // What is no network is told when the adapter is made, not at the first picture.
  createReach(allowPrivate);
  return {
    isEnabled: chosen.enabled ?? true,
    maxCount: chosen.max_count ?? 16,
    maxBytes: chosen.max_bytes,
    timeoutMs: chosen.timeout_ms,
    allowPrivate,
  };
}
