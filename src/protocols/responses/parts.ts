/** The events inside an item: its parts are opened, sent piece by piece, and closed with the whole. */
import type { ItemDelta } from "../../core/event.ts";
import type { Annotation, ToolCall } from "../../core/item.ts";
import { toWireAnnotation } from "./annotations.ts";
import { toLogprobs } from "./logprobs.ts";
import { toReasoningPart, toRefusalPart, toSummaryPart, toTextPart } from "./output.ts";

/** Writes the events of a stream and numbers them. */
export interface Say {
  event(type: string, body: string): string;
  /** The number for an event that is assembled elsewhere. */
  number(): number;
}

export interface ItemParts {
  accept(delta: ItemDelta): string;
  /** Nothing more follows. */
  close(): string;
}

/** The parts of a message or of reasoning. */
export function createParts(say: Say, itemId: string, outputIndex: number): ItemParts {
  // Raw reasoning may continue after a summary section, so content and summary each have their own open part.
  const open: { content?: OpenPart; summary?: OpenPart } = {};

  return {
    accept(delta) {
      if (delta.kind === "arguments" || delta.kind === "extra") return "";
      if (delta.kind === "annotation") return open.content?.annotate(delta.annotation) ?? "";
      const side = delta.kind === "summary" ? "summary" : "content";
      const before = open[side];
      if (before?.number === delta.part) return before.accept(delta);
      const part = (open[side] = openPart(say, delta.kind, delta.part, itemId, outputIndex));
      return (before?.close() ?? "") + part.begin() + part.accept(delta);
    },
    close: () => (open.summary?.close() ?? "") + (open.content?.close() ?? ""),
  };
}

/** A call's input has no parts. For a search, the wire sends nothing until it is complete. */
export function createCallInput(say: Say, call: ToolCall, itemId: string, outputIndex: number): ItemParts {
  if (call.kind === "search") return { accept: () => "", close: () => "" };
  const type = call.kind === "custom" ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const where = `"item_id":"${itemId}"`;
  const before = `event: ${type}.delta\ndata: {"type":"${type}.delta","delta":`;
  const after = `,${where},"output_index":${outputIndex},"sequence_number":`;
  let written = "";
  return {
    accept({ kind, text }) {
      if (kind === "extra") return ""; // the whole call has it
      written += text;
      return `${before}${JSON.stringify(text)}${after}${say.number()}}\n\n`;
    },
    close() {
      const input = JSON.stringify(written);
      const body =
        call.kind === "custom"
          ? `"input":${input},${where},"output_index":${outputIndex}`
          : `"arguments":${input},${where},"name":${JSON.stringify(call.name)},"output_index":${outputIndex}`;
      return say.event(`${type}.done`, body);
    },
  };
}

type PartKind = Exclude<ItemDelta["kind"], "arguments" | "annotation" | "extra">;

const content = { part: "content_part", index: "content_index" } as const;
const summary = { part: "reasoning_summary_part", index: "summary_index" } as const;

/** The wire's names for each kind of part. */
const kinds = {
  text: { ...content, text: "output_text", said: "text", write: toTextPart },
  refusal: { ...content, text: "refusal", said: "refusal", write: toRefusalPart },
  reasoning: { ...content, text: "reasoning_text", said: "text", write: toReasoningPart },
  summary: { ...summary, text: "reasoning_summary_text", said: "text", write: toSummaryPart },
} as const satisfies Record<PartKind, object>;

interface OpenPart {
  readonly number: number;
  begin(): string;
  accept(delta: ItemDelta): string;
  annotate(annotation: Annotation | undefined): string;
  close(): string;
}

function openPart(say: Say, kind: PartKind, number: number, itemId: string, outputIndex: number): OpenPart {
  const { text: name, part, index, said, write } = kinds[kind];
  const place = `"${index}":${number}`;
  const where = `"item_id":"${itemId}"`;
  const type = `response.${name}.delta`;
  // The one line that runs for every token: only the text and the number are missing.
  const before = `event: ${type}\ndata: {"type":"${type}",${place},"delta":`;
  const after = `,${where},${kind === "text" ? `"logprobs":[],` : ""}"output_index":${outputIndex},"sequence_number":`;
  const logprobs: unknown[] = [];
  const annotations: Annotation[] = [];
  let whole = "";

  return {
    number,
    begin: () =>
      say.event(
        `response.${part}.added`,
        `${place},${where},"output_index":${outputIndex},"part":${JSON.stringify(write(""))}`,
      ),
    accept(delta) {
      whole += delta.text;
      const text = JSON.stringify(delta.text);
      if (delta.logprobs === undefined) return `${before}${text}${after}${say.number()}}\n\n`;
      for (const entry of delta.logprobs) logprobs.push(entry);
      const told = JSON.stringify(toLogprobs(delta.logprobs, false));
      return say.event(type, `${place},"delta":${text},${where},"logprobs":${told},"output_index":${outputIndex}`);
    },
    annotate(annotation) {
      if (annotation === undefined) return "";
      const number = annotations.push(annotation) - 1;
      const note = `"annotation":${JSON.stringify(toWireAnnotation(annotation))},"annotation_index":${number}`;
      return say.event(`response.${name}.annotation.added`, `${note},${place},${where},"output_index":${outputIndex}`);
    },
    close() {
      const told = kind === "text" ? `"logprobs":${JSON.stringify(toLogprobs(logprobs, false))},` : "";
      const text = `${place},${where},${told}"output_index":${outputIndex},"${said}":${JSON.stringify(whole)}`;
      const done = `${place},${where},"output_index":${outputIndex},"part":${JSON.stringify(write(whole, logprobs, annotations))}`;
      return say.event(`response.${name}.done`, text) + say.event(`response.${part}.done`, done);
    },
  };
}
