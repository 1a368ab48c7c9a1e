/** Reads the parts of a model's stream into deltas. */
import type { SharedV3ProviderMetadata } from "@ai-sdk/provider";
import type { Delta } from "../../core/delta.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Finish } from "../../core/turn.ts";
import { brokenOff } from "../failures.ts";
import { createCallReader } from "./calls.ts";
import { type SealedBlock, writeSeal } from "./seal.ts";
import type { FinishPart, StartPart, StreamPart } from "./spec.ts";
import { readUsage } from "./usage.ts";

export interface ReplyReader {
  /** Tells what the provider ignores. */
  begin(part: StartPart): void;
  /** Adds the part's deltas; throws what an `error` part holds. */
  accept(part: StreamPart, deltas: Delta[]): void;
  /** Throws if the answer is unfinished. */
  end(): void;
}

export interface ReplySurroundings {
  isCustom(toolName: string): boolean;
  reportOmission(what: string): void;
}

export function createReplyReader({ isCustom, reportOmission }: ReplySurroundings): ReplyReader {
  const thought = createThought();
  const calls = createCallReader(isCustom);
  let isTextOver = false;
  let hasSources = false;
  let isFinished = false;

  function finish({ finishReason, usage }: FinishPart, deltas: Delta[]): void {
    thought.seal(deltas);
    isFinished = true;
    const counted = readUsage(usage);
    if (counted !== undefined) deltas.push({ type: "usage", usage: counted });
    deltas.push({ type: "finish", reason: readFinish(finishReason) });
  }

  return {
    begin({ warnings }) {
      for (const warning of warnings ?? []) {
        const what = readWarning(warning);
        if (what !== undefined) reportOmission(what);
      }
    },
    accept(part, deltas) {
      switch (part.type) {
        case "text-delta":
          if (part.delta === "") return;
          thought.leave(deltas);
          // Sent only when another text begins: even a stream that breaks off ends its texts.
          if (isTextOver) deltas.push({ type: "message-end" });
          isTextOver = false;
          deltas.push({ type: "text", text: part.delta });
          return;
        case "text-end":
          isTextOver = true;
          return;
        case "reasoning-start":
          return thought.begin(part.id, part.providerMetadata);
        case "reasoning-delta":
          return thought.go(part.id, part.delta, part.providerMetadata, deltas);
        case "reasoning-end":
          thought.mark(part.id, part.providerMetadata);
          return thought.seal(deltas);
        case "tool-input-start":
          if (part.providerExecuted === true) return;
          thought.markCall(part.id, part.providerMetadata);
          if (calls.areWhole()) thought.leave(deltas);
          return calls.begin(part, deltas);
        case "tool-input-delta":
          return calls.go(part.id, part.delta, deltas);
        case "tool-call":
          if (part.providerExecuted === true) return;
          thought.markCall(part.toolCallId, part.providerMetadata);
          if (calls.areWhole()) thought.leave(deltas);
          return calls.end(part, deltas);
        case "error":
          throw part.error;
        case "finish":
          return finish(part, deltas);
        case "file":
          return reportOmission(`file of type ${part.mediaType} that the model generated`);
        case "source":
          if (!hasSources) reportOmission("sources that the model cited");
          hasSources = true;
          return;
        default:
          return; // metadata, raw chunks: nothing of the answer
      }
    },
    end() {
      if (!isFinished) throw brokenOff();
    },
  };
}

/** The reasoning since the last text or call: one item with one seal. */
function createThought() {
  let blocks: { id: string; text: string; options: SharedV3ProviderMetadata | undefined }[] = [];
  let marks: Record<string, SharedV3ProviderMetadata> = {};
  const marked = new Set<string>();
  let isDirty = false;

  function find(id: string) {
    let block = blocks.findLast((one) => one.id === id);
    if (block === undefined) blocks.push((block = { id, text: "", options: undefined }));
    return block;
  }

  function mark(id: string, metadata: SharedV3ProviderMetadata | undefined): void {
    if (metadata === undefined) return;
    find(id).options = metadata;
    isDirty = true;
  }

  function seal(deltas: Delta[]): void {
    if (!isDirty) return;
    isDirty = false;
    const sealed = blocks.map(({ text, options }): SealedBlock => ({ text, options }));
    deltas.push({ type: "reasoning-seal", encrypted: writeSeal({ blocks: sealed, calls: marks }) });
  }

  return {
    begin(id: string, metadata: SharedV3ProviderMetadata | undefined): void {
      blocks.push({ id, text: "", options: undefined });
      mark(id, metadata);
    },
    go(id: string, text: string, metadata: SharedV3ProviderMetadata | undefined, deltas: Delta[]): void {
      mark(id, metadata);
      if (text === "") return;
      find(id).text += text;
      deltas.push({ type: "reasoning", text });
    },
    mark,
    /** Marks on a call are kept with the reasoning before it, or after the last call while another is open. */
    markCall(callId: string, metadata: SharedV3ProviderMetadata | undefined): void {
      if (metadata === undefined || marked.has(callId)) return;
      marked.add(callId);
      marks[callId] = metadata;
      isDirty = true;
    },
    seal,
    /** Something else is said now. */
    leave(deltas: Delta[]): void {
      seal(deltas);
      blocks = [];
      marks = {};
    },
  };
}

/** Version 2 gives the bare word. */
function readFinish(reason: FinishPart["finishReason"] | undefined): Finish {
  const { unified, raw } = typeof reason === "string" ? { unified: reason, raw: reason } : (reason ?? {});
  switch (unified) {
    case "stop":
    case "length":
    case "content-filter":
    case "tool-calls":
      return unified;
    case "error":
      throw new GatewayError("adapter_error", "The model stopped because of an error of its own.");
    default:
      // Without any reason, the stream ended and the answer did not.
      if (raw === undefined) throw brokenOff();
      return "stop";
  }
}

type Warning = StartPart["warnings"][number];

/** What the provider ignored of the call, in the wires' terms. */
function readWarning(warning: Warning): string | undefined {
  switch (warning.type) {
    case "unsupported":
      return toSnakeCase(warning.feature);
    case "unsupported-setting":
      return toSnakeCase(String(warning.setting));
    case "unsupported-tool":
      return `tool ${warning.tool.name}`;
    default:
      return undefined;
  }
}

function toSnakeCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
