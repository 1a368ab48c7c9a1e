/** The ai-sdk adapter: any AI SDK provider package that the operator has installed. */
import type { Adapter } from "../../core/adapter.ts";
import { brokenOff } from "../http/failure.ts";
import type { MediaRules } from "../media/media.ts";
import { checkBatch, unfit } from "../said.ts";
import { openSource, type Source, type Timeouts } from "../waiting.ts";
import { createExplain } from "./failure.ts";
import { fetchFiles } from "./files.ts";
import { createProvider, type ProviderSettings, toVersion } from "./provider.ts";
import { createReplyReader } from "./reply.ts";
import { writeRequest } from "./request.ts";

interface AiSdkSettings extends ProviderSettings, Timeouts {
  /** By the provider's name, with every request. */
  readonly provider_options: Readonly<Record<string, unknown>>;
  readonly fetch_media: MediaRules;
}

/** Packages are looked for beside the config file, in `folder`, then beside the gateway. */
export function createAiSdk(settings: AiSdkSettings, environment: NodeJS.ProcessEnv, folder: string): Adapter {
  const { package: name, options, provider_options: providerOptions, fetch_media: rules } = settings;
  const makeModel = createProvider(settings, folder);
  const explain = createExplain(name, options, environment);

  return {
    speaks: [],
    open(turn, caller, tell) {
      const reply = createReplyReader(turn.settings.tools, tell);
      let reader: Reader | undefined;

      async function begin(abortSignal: AbortSignal): Promise<Reader> {
        const model = await makeModel(turn.model);
        const { specificationVersion: version } = model;
        const files = await fetchFiles(turn, model, rules, tell, abortSignal);
        const call = writeRequest(turn, files, version, tell);
        const { stream } = await model.doStream(toVersion({ ...call, providerOptions, abortSignal }, version));
        if (typeof stream?.getReader !== "function") throw unfit("is no stream", stream);
        return stream.getReader();
      }

      const start = (signal: AbortSignal): Source => ({
        async next() {
          try {
            reader ??= await begin(signal);
            while (!reply.isFinished()) {
              const { done, value } = await reader.read();
              if (done) throw brokenOff();
              const deltas = reply.read(value);
              if (deltas.length > 0) return checkBatch(deltas);
            }
            void drain(reader);
            return undefined;
          } catch (thrown) {
            throw explain(thrown);
          }
        },
        drop: () => void reader?.cancel().catch(() => {}),
      });
      return openSource(`the package ${name}`, start, turn, settings, caller);
    },
  };
}

type Reader = ReadableStreamDefaultReader<unknown>;

/** A connection can be used again only when all has been read. */
async function drain(reader: Reader): Promise<void> {
  try {
    while (!(await reader.read()).done);
  } catch {
    // Nobody listens any more.
  }
}
