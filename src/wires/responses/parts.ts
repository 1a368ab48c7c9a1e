/** A text while it is told: its events, of which every token makes one. */
import type { ItemDelta } from "../../core/event.ts";
import type { Annotation, ToolCall } from "../../core/item.ts";
import { writeAnnotation, writeLogprobs, writeRefusal, writeSaid } from "./content.ts";
import { writeSection, writeThought } from "./written.ts";

/** Writes the events of a stream and numbers them. */
export interface Say {
  event(type: string, body: string): string;
  /** The number for an event that is put together elsewhere. */
  number(): number;
}

/** A part of a message or of reasoning, or the input of a call. */
export type OpenText = ReturnType<typeof openText>;
export type TextKind = keyof typeof kinds;

const content = { part: "content_part", index: "content_index", said: "text" };
const section = { part: "reasoning_summary_part", index: "summary_index", said: "text" };

/** The wire's names for each kind. A call's input is no part of anything. */
const kinds = {
  text: { ...content, name: "output_text", write: writeSaid },
  refusal: { ...content, name: "refusal", said: "refusal", write: writeRefusal },
  reasoning: { ...content, name: "reasoning_text", write: writeThought },
  summary: { ...section, name: "reasoning_summary_text", write: writeSection },
  function: { name: "function_call_arguments", said: "arguments", part: undefined },
  custom: { name: "custom_tool_call_input", said: "input", part: undefined },
} as const;

/** `item`: where the item stands; `last`: what else its end tells. */
export function openText(say: Say, kind: TextKind, number: number, item: string, last = "") {
  const form = kinds[kind];
  const place = form.part === undefined ? item : `"${form.index}":${number},${item}`;
  const type = `response.${form.name}`;
  // Only the text and the number are missing.
  const before = `event: ${type}.delta\ndata: {"type":"${type}.delta",${place},"delta":`;
  const after = kind === "text" ? `,"logprobs":[],"sequence_number":` : `,"sequence_number":`;
  const logprobs: unknown[] = [];
  const annotations: Annotation[] = [];
  let whole = "";

  const sayPart = (step: "added" | "done"): string => {
    if (form.part === undefined) return "";
    const part = JSON.stringify(form.write(whole, logprobs, annotations));
    return say.event(`response.${form.part}.${step}`, `${place},"part":${part}`);
  };
  const listLogprobs = (reported: readonly unknown[]): string =>
    kind === "text" ? `,"logprobs":${JSON.stringify(writeLogprobs(reported, false))}` : "";

  return {
    kind,
    number,
    begin: (): string => sayPart("added"),
    add(delta: ItemDelta): string {
      whole += delta.text;
      const text = JSON.stringify(delta.text);
      if (delta.logprobs === undefined) return `${before}${text}${after}${say.number()}}\n\n`;
      for (const entry of delta.logprobs) logprobs.push(entry);
      return say.event(`${type}.delta`, `${place},"delta":${text}${listLogprobs(delta.logprobs)}`);
    },
    annotate(annotation: Annotation): string {
      const at = annotations.push(annotation) - 1;
      const note = `"annotation":${JSON.stringify(writeAnnotation(annotation))},"annotation_index":${at}`;
      return say.event(`${type}.annotation.added`, `${note},${place}`);
    },
    close: (): string =>
      say.event(`${type}.done`, `${place},"${form.said}":${JSON.stringify(whole)}${listLogprobs(logprobs)}${last}`) +
      sayPart("done"),
    whole: (): string => whole,
  };
}

/** Undefined for a search, of which the wire tells nothing until it is complete. */
export function openInput(say: Say, { kind, name }: ToolCall, item: string): OpenText | undefined {
  if (kind === "search") return undefined;
  return openText(say, kind, 0, item, kind === "function" ? `,"name":${JSON.stringify(name)}` : "");
}
