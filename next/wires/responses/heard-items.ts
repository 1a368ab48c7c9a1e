/** Reads the items of an answer: what pieces have told of them is remembered, so that at its end only the rest is told. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Annotation, Extra } from "../../core/item.ts";
import { isObject } from "../fields.ts";
import { listAt, type Said, textAt } from "../json.ts";
import { toAnnotation } from "./content.ts";
import { readOther } from "./other.ts";
import { markSource } from "./seal.ts";
import { searchName } from "./tools.ts";

interface Heard {
  /** By their kind and number. */
  readonly texts: Map<string, string>;
  /** How many notes of each part were told; if one came before its text, all wait until that is complete. */
  readonly notes: Map<number, number>;
  /** A message's phase (commentary or final), which begins with it and goes back with it in the next turn. */
  phase?: Extra | undefined;
  /** Of a call that has begun: the fields that the dialect adds to it, as JSON. */
  callFields?: string;
  isEnded: boolean;
}

/** Items are known by their index in the output, and their parts by theirs in it. */
export function createItemsReader(source: string, tell: (delta: Delta) => void) {
  const items = new Map<number, Heard>();

  function itemAt(index: number): Heard {
    const known = items.get(index);
    if (known !== undefined) return known;
    const item: Heard = { texts: new Map(), notes: new Map(), isEnded: false };
    items.set(index, item);
    return item;
  }

  function add({ texts }: Heard, key: string, delta: Extract<Delta, { readonly text: string }>): void {
    if (delta.text === "") return;
    texts.set(key, (texts.get(key) ?? "") + delta.text);
    tell(delta);
  }

  function addText(index: number, part: number, text: string, logprobs: readonly unknown[] = []): void {
    const item = itemAt(index);
    const reported = logprobs.length > 0 ? logprobs : undefined;
    add(item, `text ${part}`, { type: "text", text, logprobs: reported, extra: item.phase });
  }

  function addRefusal(index: number, part: number, text: string): void {
    const item = itemAt(index);
    add(item, `refusal ${part}`, { type: "refusal", text, extra: item.phase });
  }

  function addReasoning(index: number, part: number, text: string): void {
    add(itemAt(index), `thought ${part}`, { type: "reasoning", text });
  }

  /** Sections of all items have numbers of their own. */
  function addSummary(index: number, section: number, text: string): void {
    add(itemAt(index), `section ${section}`, { type: "reasoning", text, summary: index * mostSections + section });
  }

  /** If the call has not begun, its end has them. */
  function addArguments(index: number, text: string): void {
    const call = itemAt(index);
    if (call.callFields !== undefined) add(call, "arguments", { type: "tool-arguments", index, text });
  }

  /** Some servers stream less than the whole, or tell it as an object. */
  function endArguments(index: number, whole: unknown): void {
    const text = isObject(whole) ? JSON.stringify(whole) : whole;
    addArguments(index, restOf(itemAt(index), "arguments", text));
  }

  /** Also for a call that has begun: its dialect may have added something since. One without a name begins at its end. */
  function beginCall(item: Said, index: number): void {
    const kind = callKinds.get(item["type"]);
    const name = textAt(item, "name");
    if (kind === undefined || name === undefined) return;
    const call = itemAt(index);
    const extra = readAdded(item);
    const fields = JSON.stringify(extra?.fields ?? {});
    if (call.callFields === undefined) {
      const [callId, group] = [textAt(item, "call_id"), textAt(item, "namespace")];
      tell({ type: "tool-call", index, callId, name, kind, group, extra });
    } else if (extra !== undefined && fields !== call.callFields) tell({ type: "tool-extra", index, extra });
    call.callFields = fields;
  }

  function addNote(index: number, part: number, annotation: Annotation | undefined): void {
    const { texts, notes } = itemAt(index);
    const told = notes.get(part) ?? (texts.has(`text ${part}`) ? 0 : waiting);
    notes.set(part, told === waiting ? waiting : told + 1);
    if (told !== waiting && annotation !== undefined) tell({ type: "annotation", annotation });
  }

  function endMessage(item: Said, index: number): void {
    const heard = itemAt(index);
    heard.phase = readPhase(item);
    for (const [number, part] of objectsAt(item, "content").entries()) {
      addText(index, number, restOf(heard, `text ${number}`, part["text"]), listAt(part, "logprobs"));
      addRefusal(index, number, restOf(heard, `refusal ${number}`, part["refusal"]));
      const told = Math.max(heard.notes.get(number) ?? 0, 0);
      for (const annotation of objectsAt(part, "annotations")
        .slice(told)
        .flatMap((note) => readNote(note) ?? []))
        tell({ type: "annotation", annotation });
    }
    if (item["status"] !== "incomplete") tell({ type: "message-end", extra: heard.phase });
  }

  function endReasoning(item: Said, index: number): void {
    const heard = itemAt(index);
    for (const [number, { text }] of objectsAt(item, "content").entries())
      addReasoning(index, number, restOf(heard, `thought ${number}`, text));
    for (const [number, { text }] of objectsAt(item, "summary").entries())
      addSummary(index, number, restOf(heard, `section ${number}`, text));
    const encrypted = textAt(item, "encrypted_content");
    if (encrypted !== undefined) tell({ type: "reasoning-seal", encrypted: markSource(encrypted, source) });
  }

  function endCall(item: Said, index: number): void {
    beginCall(item, index);
    if (itemAt(index).callFields === undefined)
      throw new GatewayError("adapter_protocol", "The upstream called a tool without naming it.");
    endArguments(index, item["arguments"] ?? item["input"]);
  }

  /** A tool search for the caller to run is a call; the server's own are marked, or have no id. */
  function endOther(item: Said, index: number): void {
    const callId = textAt(item, "call_id");
    const isCallers = item["type"] === "tool_search_call" && item["execution"] !== "server" && callId !== undefined;
    if (!isCallers) return textAt(item, "type") === undefined ? undefined : tell(readOther(item));
    itemAt(index).callFields = "{}";
    tell({ type: "tool-call", index, callId, name: searchName, kind: "search" });
    endArguments(index, item["arguments"] ?? {});
  }

  function end(item: Said, index: number): void {
    const heard = itemAt(index);
    if (heard.isEnded) return;
    heard.isEnded = true;
    switch (item["type"]) {
      case "message":
        return endMessage(item, index);
      case "reasoning":
        return endReasoning(item, index);
      case "function_call":
      case "custom_tool_call":
        return endCall(item, index);
      default:
        return endOther(item, index);
    }
  }

  return {
    begin(item: Said, index: number): void {
      if (item["type"] === "message") itemAt(index).phase = readPhase(item);
      else beginCall(item, index);
    },
    addText,
    addRefusal,
    addReasoning,
    addSummary,
    addArguments,
    endArguments,
    addNote,
    end,
    /** Some servers tell only the end of an answer, and some no end of its items. */
    endAll(response: Said): void {
      for (const [index, item] of objectsAt(response, "output").entries())
        if (items.size === 0 || items.has(index)) end(item, index);
    },
    hasCalls: (): boolean => items.values().some(({ callFields }) => callFields !== undefined),
  };
}

const waiting = -1;
/** More than any summary has. */
const mostSections = 10_000;

/** What the whole has beyond that part of it which was told; nothing if it is another text. */
function restOf({ texts }: Heard, key: string, whole: unknown): string {
  const told = texts.get(key) ?? "";
  return typeof whole === "string" && whole.startsWith(told) ? whole.slice(told.length) : "";
}

function readPhase(message: Said): Extra | undefined {
  const phase = textAt(message, "phase");
  return phase === undefined ? undefined : { dialect: "responses", fields: { phase } };
}

/** The fields of a call that we do not know. */
function readAdded(call: Said): Extra | undefined {
  const added = Object.entries(call).filter(([key, value]) => !knownOfCall.has(key) && value !== null);
  return added.length === 0 ? undefined : { dialect: "responses", fields: Object.fromEntries(added) };
}

const knownOfCall = new Set(["type", "id", "status", "call_id", "name", "namespace", "arguments", "input"]);

const callKinds: ReadonlyMap<unknown, "function" | "custom"> = new Map([
  ["function_call", "function"],
  ["custom_tool_call", "custom"],
]);

export function readNote(note: unknown): Annotation | undefined {
  const type = isObject(note) ? textAt(note, "type") : undefined;
  return type === undefined ? undefined : toAnnotation(type, note as Said);
}

function objectsAt(from: Said, key: string): readonly Said[] {
  return (listAt(from, key) ?? []).filter(isObject);
}
