/** The part of the AI SDK's language model specification that we use, and how its versions differ. */
import type {
  LanguageModelV2StreamPart,
  LanguageModelV3CallOptions,
  LanguageModelV3Prompt,
  LanguageModelV3StreamPart,
} from "@ai-sdk/provider";
import { GatewayError } from "../../core/errors.ts";

/** A model of any supported version. */
export interface LanguageModel {
  readonly specificationVersion: SpecVersion;
  /** The provider's name, a dot, and the kind of model: `anthropic.messages`. */
  readonly provider: string;
  /** The URLs that it accepts, by media type. */
  readonly supportedUrls?: SupportedUrls | PromiseLike<SupportedUrls> | undefined;
  doStream(options: unknown): PromiseLike<{ readonly stream: ReadableStream<StreamPart> }>;
}

type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;

const versions = ["v2", "v3", "v4"] as const;
type SpecVersion = (typeof versions)[number];

/** Parts that only the newest version has are ignored. */
export type StreamPart = LanguageModelV2StreamPart | LanguageModelV3StreamPart;

export type StartPart = Extract<StreamPart, { type: "stream-start" }>;
export type FinishPart = Extract<StreamPart, { type: "finish" }>;

/** A call in version 3, plus the effort, which has its own field since version 4. */
export interface Call extends LanguageModelV3CallOptions {
  readonly reasoning?: string | undefined;
}

/** Checks what a provider returned. */
export function toLanguageModel(made: unknown, packageName: string): LanguageModel {
  if (typeof made !== "object" || made === null || !("doStream" in made) || typeof made.doStream !== "function") {
    throw new GatewayError("adapter_error", `The package '${packageName}' does not provide language models.`);
  }
  const version = "specificationVersion" in made ? made.specificationVersion : undefined;
  if (!versions.some((known) => known === version)) {
    const known = versions.join(", ");
    throw new GatewayError(
      "adapter_error",
      `The package '${packageName}' implements version ${String(version)} of the AI SDK's specification; the gateway supports ${known}. ` +
        "Install another version of the package, or a newer gateway.",
    );
  }
  return made as LanguageModel;
}

/** The call as the model's version writes it. */
export function toVersion(call: Call, version: SpecVersion): unknown {
  return version === "v4" ? { ...call, prompt: call.prompt.map(tagFiles) } : call;
}

/** Version 4 tags a file's content with its kind. */
function tagFiles(message: LanguageModelV3Prompt[number]): unknown {
  if (typeof message.content === "string") return message;
  const content = message.content.map((part) => {
    if (part.type !== "file") return part;
    const { data } = part;
    return { ...part, data: data instanceof URL ? { type: "url", url: data } : { type: "data", data } };
  });
  return { ...message, content };
}
