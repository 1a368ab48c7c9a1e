/** The events inside an item: its parts are opened, told piece by piece, and closed with the whole. */
import type { ItemDelta } from "../../core/event.ts";
import type { Annotation, ToolCall } from "../../core/item.ts";
import { writeAnnotation, writeLogprobs, writeRefusal, writeText } from "./content.ts";
import { writeSection, writeThought } from "./written.ts";

/** Writes the events of a stream and numbers them. */
export interface Say {
  event(type: string, body: string): string;
  /** The number for an event that is put together elsewhere. */
  number(): number;
}

/** The texts of an open item. */
export interface Texts {
  add(kind: ItemDelta["kind"], part: number, delta: ItemDelta): string;
  /** Nothing more follows. */
  close(): string;
}

type PartKind = Exclude<ItemDelta["kind"], "arguments" | "annotation" | "extra">;

/** The parts of a message or of reasoning. */
export function createParts(say: Say, itemId: string, outputIndex: number): Texts {
  // Raw reasoning may go on after a section of its summary, so each side has an open part of its own.
  const open: { content?: OpenPart; summary?: OpenPart } = {};
  return {
    add(kind, number, delta) {
      if (kind === "arguments" || kind === "extra") return "";
      if (kind === "annotation") return open.content?.annotate(delta.annotation) ?? "";
      const side = kind === "summary" ? "summary" : "content";
      const before = open[side];
      if (before?.number === number) return before.add(delta);
      const part = (open[side] = openPart(say, kind, number, itemId, outputIndex));
      return (before?.close() ?? "") + part.begin() + part.add(delta);
    },
    close: () => (open.summary?.close() ?? "") + (open.content?.close() ?? ""),
  };
}

const content = { part: "content_part", index: "content_index", said: "text" };
const summary = { part: "reasoning_summary_part", index: "summary_index", said: "text" };

/** The wire's names for each kind of part. */
const kinds = {
  text: { ...content, name: "output_text", write: writeSaid },
  refusal: { ...content, name: "refusal", said: "refusal", write: writeRefusal },
  reasoning: { ...content, name: "reasoning_text", write: writeThought },
  summary: { ...summary, name: "reasoning_summary_text", write: writeSection },
} as const satisfies Record<PartKind, object>;

function writeSaid(text: string, logprobs?: readonly unknown[], annotations?: readonly Annotation[]): object {
  return writeText(text, "assistant", logprobs, annotations);
}

interface OpenPart {
  readonly number: number;
  begin(): string;
  add(delta: ItemDelta): string;
  annotate(annotation: Annotation | undefined): string;
  close(): string;
}

function openPart(say: Say, kind: PartKind, number: number, itemId: string, outputIndex: number): OpenPart {
  const { name, part, index, said, write } = kinds[kind];
  const place = `"${index}":${number},"item_id":"${itemId}","output_index":${outputIndex}`;
  const type = `response.${name}.delta`;
  // Of the one event that every token makes only the text and the number are missing.
  const before = `event: ${type}\ndata: {"type":"${type}",${place},"delta":`;
  const after = `,${kind === "text" ? `"logprobs":[],` : ""}"sequence_number":`;
  const logprobs: unknown[] = [];
  const annotations: Annotation[] = [];
  let whole = "";

  const listLogprobs = (reported: readonly unknown[]): string =>
    kind === "text" ? `,"logprobs":${JSON.stringify(writeLogprobs(reported, false))}` : "";

  return {
    number,
    begin: () => say.event(`response.${part}.added`, `${place},"part":${JSON.stringify(write(""))}`),
    add(delta) {
      whole += delta.text;
      const text = JSON.stringify(delta.text);
      if (delta.logprobs === undefined) return `${before}${text}${after}${say.number()}}\n\n`;
      for (const entry of delta.logprobs) logprobs.push(entry);
      return say.event(type, `${place},"delta":${text}${listLogprobs(delta.logprobs)}`);
    },
    annotate(annotation) {
      if (annotation === undefined) return "";
      const at = annotations.push(annotation) - 1;
      const note = `"annotation":${JSON.stringify(writeAnnotation(annotation))},"annotation_index":${at}`;
      return say.event(`response.${name}.annotation.added`, `${note},${place}`);
    },
    close() {
      const text = `"${said}":${JSON.stringify(whole)}${listLogprobs(logprobs)}`;
      const shown = JSON.stringify(write(whole, logprobs, annotations));
      return (
        say.event(`response.${name}.done`, `${place},${text}`) +
        say.event(`response.${part}.done`, `${place},"part":${shown}`)
      );
    },
  };
}

/** A call's input has no parts. Of a search the wire tells nothing until it is complete. */
export function createInput(say: Say, { kind, name }: ToolCall, itemId: string, outputIndex: number): Texts {
  if (kind === "search") return { add: () => "", close: () => "" };
  const isCustom = kind === "custom";
  const type = isCustom ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const place = `"item_id":"${itemId}","output_index":${outputIndex}`;
  const before = `event: ${type}.delta\ndata: {"type":"${type}.delta",${place},"delta":`;
  const after = `,"sequence_number":`;
  let whole = "";
  return {
    add(added, _, { text }) {
      // What the dialect adds to a call is in the whole of it.
      if (added !== "arguments") return "";
      whole += text;
      return `${before}${JSON.stringify(text)}${after}${say.number()}}\n\n`;
    },
    close() {
      const input = JSON.stringify(whole);
      const said = isCustom ? `"input":${input}` : `"arguments":${input},"name":${JSON.stringify(name)}`;
      return say.event(`${type}.done`, `${place},${said}`);
    },
  };
}
