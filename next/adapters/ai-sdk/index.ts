/** The ai-sdk adapter: any AI SDK provider package that the operator has installed. */
import type { Adapter } from "../../core/adapter.ts";
import { brokenOff } from "../http/failure.ts";
import type { MediaRules } from "../media/media.ts";
import { checkBatch, unfit } from "../said.ts";
import { type Missed, openSource, type Source, type Timeouts } from "../waiting.ts";
import { createExplain } from "./failure.ts";
import { fetchFiles } from "./files.ts";
import { createProvider, type ProviderSettings, toVersion } from "./provider.ts";
import { createReplyReader } from "./reply.ts";
import { writeRequest } from "./request.ts";

export interface AiSdkSettings extends ProviderSettings, Timeouts {
  /** By the provider's name, with every request. */
  readonly provider_options: Readonly<Record<string, unknown>>;
  readonly fetch_media: MediaRules;
}

/** Packages are looked for beside the config file, in `folder`, then beside the gateway. */
export function createAiSdk(settings: AiSdkSettings, environment: NodeJS.ProcessEnv, folder: string): Adapter {
  const { package: name, fetch_media: rules } = settings;
  const makeModel = createProvider(settings, folder);
  const explain = createExplain(name, settings.options, environment);
  const missed: Missed = {
    first_byte: `${name} said nothing`,
    idle: `${name} said nothing more`,
    total: `${name} did not finish its answer`,
  };

  return {
    speaks: [],
    open(turn, caller, tell) {
      const reply = createReplyReader(turn.settings.tools, tell);
      let reader: Reader | undefined;

      async function begin(abortSignal: AbortSignal): Promise<Reader> {
        const model = await makeModel(turn.model);
        const { specificationVersion: version } = model;
        const call = writeRequest(turn, settings.provider_options, version, rules, tell);
        const prompt = await fetchFiles(call.prompt, turn, model, rules, tell, abortSignal);
        const { stream } = await model.doStream(toVersion({ ...call, prompt, abortSignal }, version));
        if (typeof stream?.getReader !== "function") throw unfit("is no stream", stream);
        return stream.getReader();
      }

      function start(signal: AbortSignal): Source {
        return {
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
        };
      }
      return openSource(start, turn, settings, caller, missed);
    },
  };
}

type Reader = ReadableStreamDefaultReader<unknown>;

const drainMs = 1_000;

/** A connection can be used again only when all has been read. */
async function drain(reader: Reader): Promise<void> {
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), drainMs);
  try {
    while (!(await reader.read()).done);
  } catch {
    // Nobody listens any more.
  }
  clearTimeout(timer);
}
