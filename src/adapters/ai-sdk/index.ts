/** The ai-sdk adapter: any AI SDK provider package that the operator has installed. */
import type { Adapter, Tell } from "../../core/adapter.ts";
import type { Turn } from "../../core/turn.ts";
import { brokenOff } from "../http/failure.ts";
import type { MediaRules } from "../media/media.ts";
import { checkBatch } from "../said.ts";
import { openSource, type Timeouts } from "../waiting.ts";
import { createExplain } from "./failure.ts";
import { fetchFiles } from "./files.ts";
import { createProvider, type ProviderSettings } from "./provider.ts";
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

  async function* answer(turn: Turn, abortSignal: AbortSignal, tell: Tell) {
    const reply = createReplyReader(turn.settings.tools, tell);
    try {
      const model = await makeModel(turn.model);
      const files = await fetchFiles(turn.items, model, rules, abortSignal);
      const call = writeRequest(turn, files, tell);
      const { stream } = await model.doStream({ ...call, providerOptions, abortSignal });
      for await (const part of stream) {
        const deltas = reply.read(part);
        if (deltas.length > 0) yield checkBatch(deltas);
      }
      if (!reply.isFinished()) throw brokenOff();
    } catch (thrown) {
      throw explain(thrown);
    }
  }

  return {
    speaks: [],
    open: (turn, caller, tell) =>
      openSource(`the package ${name}`, (signal) => answer(turn, signal, tell), turn, settings, caller),
  };
}
