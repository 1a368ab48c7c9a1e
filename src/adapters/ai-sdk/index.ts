/** The ai-sdk adapter: any provider package of the AI SDK that the operator has installed. */
import { type Static, Type } from "typebox";
import type { SharedV3ProviderOptions } from "@ai-sdk/provider";
import type { Delta } from "../../core/delta.ts";
import type { GatewayError } from "../../core/errors.ts";
import type { Adapter } from "../../core/ports.ts";
import { defineAdapter } from "../type.ts";
import { createSecretScrubber, toFailure } from "./failure.ts";
import { readParts } from "./parts.ts";
import { createProvider } from "./provider.ts";
import { createReplyReader } from "./reply.ts";
import { writeRequest } from "./request.ts";
import { type StreamPart, toVersion } from "./spec.ts";

const milliseconds = (description: string, value: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647, default: value, description }));

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
  first_byte_timeout_ms: milliseconds("The longest wait for the first byte of an answer's body.", 120_000),
  idle_timeout_ms: milliseconds("The longest silence within an answer.", 120_000),
  total_timeout_ms: milliseconds("The longest that a whole answer may take. Streams have no such limit.", 600_000),
});

export const aiSdk = defineAdapter(options, (chosen) => createAiSdk(chosen, process.env, process.cwd()));

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
        const call = { ...writeRequest(turn, model, providerOptions, leaveOut), abortSignal };
        return model.doStream(toVersion(call, model.specificationVersion));
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
