/** The ai-sdk adapter: any AI SDK provider package that the operator has installed. */
import type { SharedV3ProviderOptions } from "@ai-sdk/provider";
import type { Delta } from "../../core/delta.ts";
import type { Adapter } from "../../core/ports.ts";
import type { Complete } from "../../core/schema.ts";
import { createIsCustom } from "../custom.ts";
import { type Environment, toLimits } from "../type.ts";
import { toLateness } from "../http/failure.ts";
import { createReach } from "../media/reach.ts";
import { toTraceHeaders } from "../trace.ts";
import { pullSteps } from "../waiting.ts";
import type { Limit } from "../watch.ts";
import { createSecretScrubber, toFailure } from "./failure.ts";
import { fetchFiles, type MediaRules } from "./media.ts";
import { readParts } from "./parts.ts";
import { createProvider } from "./provider.ts";
import { createReplyReader } from "./reply.ts";
import { writeRequest } from "./request.ts";
import { toVersion } from "./spec.ts";
import type { options } from "./options.ts";

export function create(chosen: Complete<typeof options>, environment: Environment, folder: string): Adapter {
  const { package: packageName, options: own = {} } = chosen;
  const makeModel = createProvider({ packageName, maker: chosen.provider, options: own, folder });
  const scrub = createSecretScrubber(own, environment);
  // It was parsed from JSON; the provider checks its own part.
  const providerOptions = (chosen.provider_options ?? {}) as SharedV3ProviderOptions;
  const limitsOf = toLimits(chosen);
  const explainDelay = (limit: Limit, limitMs: number) => toLateness(limit, limitMs, packageName);
  const media = toMediaRules(chosen);

  return {
    async *stream(turn, signal, tell) {
      const reportOmission = (what: string) => tell?.({ type: "left-out", what });
      const reply = createReplyReader({ isCustom: createIsCustom(turn.settings.tools), reportOmission });
      const open = async (abortSignal: AbortSignal) => {
        const model = await makeModel(turn.model);
        const call = writeRequest(turn, model, providerOptions, reportOmission, media);
        const prompt = await fetchFiles(call.prompt, turn.items, model, media, reportOmission, abortSignal);
        const traced = turn.trace && { headers: toTraceHeaders(turn.trace) };
        return model.doStream(toVersion({ ...call, ...traced, prompt, abortSignal }, model.specificationVersion));
      };
      const start = (inner: AbortSignal) => readParts(open, reply.begin, inner);
      try {
        for await (const parts of pullSteps(start, limitsOf(turn), signal, explainDelay)) {
          const deltas: Delta[] = [];
          try {
            for (const part of parts) reply.accept(part, deltas);
          } finally {
            // What was said before a failure is sent first.
            if (deltas.length > 0) yield deltas;
          }
        }
        reply.end();
      } catch (thrown) {
        throw toFailure(thrown, packageName, scrub);
      }
    },
  };
}

function toMediaRules({ fetch_media: chosen }: Complete<typeof options>): MediaRules {
  const allowPrivate = chosen.allow_private;
  // Reports a bad network at creation, not at the first picture.
  createReach(allowPrivate);
  return {
    isEnabled: chosen.enabled,
    maxCount: chosen.max_count,
    maxBytes: chosen.max_bytes,
    timeoutMs: chosen.timeout_ms,
    allowPrivate,
  };
}
