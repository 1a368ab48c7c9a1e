/** Writes a turn for a program: as a JSON document, as the last user's text, and into its arguments. */
import { GatewayError } from "../../core/errors.ts";
import { type Content, type Item, type Message, type Part, textOf, typeOf } from "../../core/item.ts";
import type { Tell } from "../../core/ports.ts";
import type { Settings, Tool, ToolChoice, Turn } from "../../core/turn.ts";
import { refuseChoice } from "../failures.ts";

type InputForm = "json" | "text" | "none";

/** The program's standard input. What cannot be passed on is reported to the caller. */
export function writeInput(turn: Turn, input: InputForm, tell: Tell | undefined): string {
  const reportOmission = (what: string) => tell?.({ type: "left-out", what });
  if (turn.settings.topLogprobs !== undefined) reportOmission("logprobs");
  if (input === "json") return `${JSON.stringify(toDocument(turn, reportOmission))}\n`;
  omitAllButText(turn, reportOmission);
  return input === "text" ? promptOf(turn) : "";
}

/** A text alone carries no tools, no answer format, and nothing that stands beside the text. */
function omitAllButText({ items, settings }: Turn, reportOmission: ReportOmission): void {
  for (const tool of settings.tools) reportOmission(nameTool(tool));
  if (demandsCall(settings.toolChoice)) refuseChoice("It requires a call, but there is no tool");
  if (settings.format !== undefined && settings.format.type !== "text") reportOmission("response format");
  const content = lastFromUser(items)?.content ?? "";
  const parts = typeof content === "string" ? [] : content.filter(({ type }) => type !== "text" && type !== "refusal");
  for (const kind of new Set(parts.map(kindOf))) reportOmission(`content ${kind}`);
}

function demandsCall(choice: ToolChoice | undefined): boolean {
  return choice?.type === "required" || choice?.type === "tool";
}

/** The caller's words never become an option: neither a text nor a model's name begins an argument with a dash. */
export function fillArguments(argv: readonly string[], turn: Turn): string[] {
  const prompt = promptOf(turn);
  const afterOptions = argv.indexOf("--");
  return argv.map((argument, place) => {
    // One pass: placeholders within the text are not replaced.
    const filled = argument.replace(/\{(model|prompt)\}/g, (_, word) => (word === "model" ? turn.model : prompt));
    if (filled.includes("\0")) throw unfit("contains a NUL character");
    const isOption = filled.startsWith("-") && !argument.startsWith("-");
    if (!isOption || (afterOptions !== -1 && place > afterOptions)) return filled;
    if (argument.startsWith("{model}")) throw unfit("names a model that begins with a dash");
    return ` ${filled}`;
  });
}

/** Whether an argument takes words of the caller. */
export function hasPlaceholder(argument: string): boolean {
  return /\{(model|prompt)\}/.test(argument);
}

function unfit(why: string): GatewayError {
  return new GatewayError(
    "adapter_bad_request",
    `The request ${why}, which cannot be passed to this adapter's program.`,
  );
}

function promptOf({ items }: Turn): string {
  return textOf(lastFromUser(items)?.content ?? "");
}

function lastFromUser(items: readonly Item[]): Message | undefined {
  return items.findLast((item): item is Message => item.type === "message" && item.role === "user");
}

type ReportOmission = (what: string) => void;

function toDocument({ id, model, stream, items, settings }: Turn, reportOmission: ReportOmission): unknown {
  const { instructions } = settings;
  const messages = items.flatMap((item) => toMessage(item, reportOmission));
  if (instructions !== undefined) messages.unshift({ role: "system", content: instructions });
  return {
    id,
    model,
    stream,
    messages,
    tools: toTools(settings.tools, reportOmission),
    settings: toSettings(settings),
  };
}

/** Every message has a role and content, so a program need read nothing else. */
function toMessage(item: Item, reportOmission: ReportOmission): object[] {
  switch (item.type) {
    case "message":
      return [{ role: item.role, name: item.name, ...toContent(item.content, reportOmission) }];
    case "tool-call": {
      const { callId, name, kind, arguments: written } = item;
      return [{ role: "assistant", content: "", tool_call: { call_id: callId, name, kind, arguments: written } }];
    }
    case "tool-output":
      return [{ role: "tool", call_id: item.callId, ...toContent(item.output, reportOmission) }];
    case "reasoning":
    case "compaction":
    case "other":
      return []; // private to its maker
  }
}

function toContent(
  content: Content,
  reportOmission: ReportOmission,
): { readonly content: string; readonly attachments?: object[] } {
  if (typeof content === "string") return { content };
  let text = "";
  const attachments: object[] = [];
  for (const part of content) {
    if (part.type === "text" || part.type === "refusal") text += part.text;
    else if (part.type === "other") reportOmission(`content ${kindOf(part)}`);
    else attachments.push(toAttachment(part));
  }
  return attachments.length === 0 ? { content: text } : { content: text, attachments };
}

function toAttachment(part: Extract<Part, { type: "image" | "audio" | "file" }>): object {
  const { extra: _, ...own } = part;
  if (own.type === "audio") return own;
  const { fileId: file_id, ...rest } = own;
  return { ...rest, file_id };
}

function kindOf(part: Part): string {
  return part.type === "other" ? typeOf(part.extra) : part.type;
}

function toTools(tools: readonly Tool[], reportOmission: ReportOmission): readonly object[] {
  return tools.flatMap((tool) => {
    if (tool.type !== "other") return [tool];
    reportOmission(nameTool(tool));
    return [];
  });
}

function nameTool(tool: Tool): string {
  return `tool ${tool.type === "other" ? typeOf(tool.extra) : tool.name}`;
}

/** A choice that only a dialect knows was refused before: no program speaks one. */
function toSettings(settings: Settings): object {
  const { format } = settings;
  return {
    tool_choice: settings.toolChoice,
    parallel_tool_calls: settings.parallelToolCalls,
    format: format?.type === "text" ? undefined : format,
    temperature: settings.temperature,
    top_p: settings.topP,
    presence_penalty: settings.presencePenalty,
    frequency_penalty: settings.frequencyPenalty,
    seed: settings.seed,
    stop: settings.stop,
    max_output_tokens: settings.maxOutputTokens,
    reasoning_effort: settings.reasoningEffort,
    verbosity: settings.verbosity,
  };
}
