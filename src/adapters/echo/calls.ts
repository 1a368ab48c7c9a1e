/** Chooses the tools that the model calls, and writes their arguments. */
import type { Settings, Tool } from "../../core/settings.ts";
import { makeSample } from "./sample.ts";
import type { Call } from "./speech.ts";

type Callable = Exclude<Tool, { type: "other" }>;

/** Calls what the text asks for if it `mayAsk`, and what the tool choice demands in any case. */
export function chooseCalls(settings: Settings, text: string, mayAsk: boolean): readonly Call[] {
  const { toolChoice: choice, parallelToolCalls } = settings;
  const isDemanded = choice?.type === "required" || choice?.type === "tool";
  if (choice?.type === "none" || !(mayAsk || isDemanded)) return [];
  const tools = new Map<string, Callable>();
  for (const tool of settings.tools) {
    if (tool.type !== "other" && (choice?.type !== "tool" || tool.name === choice.name)) tools.set(tool.name, tool);
  }
  const written = readCallLines(tools, text);
  const calls = written.length > 0 ? written : callNamed(tools, text, isDemanded);
  return parallelToolCalls === false ? calls.slice(0, 1) : calls;
}

type Tools = ReadonlyMap<string, Callable>;

/** Each line `CALL name {json}` is a call, if there is such a tool. */
function readCallLines(tools: Tools, text: string): readonly Call[] {
  const calls: Call[] = [];
  for (const [, name = "", rest = ""] of text.matchAll(/^CALL[ \t]+(\S+)(.*)$/gm)) {
    const tool = tools.get(name);
    if (tool === undefined) continue;
    const written = rest.trim();
    // Written arguments go out as they are, even wrong ones: a client's author must see how it handles them.
    const isWhole = written.startsWith("{") || (tool.type === "custom" && written !== "");
    calls.push(isWhole ? { type: "call", kind: tool.type, name, text: written } : toCall(tool, text, written));
  }
  return calls;
}

/** The tools that the text names or, if it names none but a call is demanded, the first. */
function callNamed(tools: Tools, text: string, isDemanded: boolean): readonly Call[] {
  const words = tools.size === 0 ? [] : text.matchAll(/[\p{L}\p{N}_-]+/gu);
  const named = new Set<Callable>();
  for (const [word] of words) {
    const tool = tools.get(word);
    if (tool !== undefined) named.add(tool);
  }
  const [first] = tools.values();
  if (named.size === 0 && isDemanded && first !== undefined) named.add(first);
  return Array.from(named, (tool) => toCall(tool, text, text));
}

/** A custom tool takes the text as it is, a function what was `told` of its parameters. */
function toCall(tool: Callable, text: string, told: string): Call {
  const { type: kind, name } = tool;
  if (tool.type === "custom") return { type: "call", kind, name, text };
  const sample = makeSample({ type: "object", ...tool.parameters }, readNamedValues(told), tool.strict === true);
  return { type: "call", kind, name, text: JSON.stringify(sample) };
}

/** Values that the text names: `city=Paris`, `city: "New York"`. The first for each name counts; `Paris.` is Paris. */
export function readNamedValues(text: string): ReadonlyMap<string, string> {
  const told = new Map<string, string>();
  for (const match of text.matchAll(/(?<![\w-])([A-Za-z_][\w-]*)[ \t]*[=:][ \t]*(?:"([^"\n]*)"|([^\s,;"]+))/g)) {
    const [, name = "", quoted, bare = ""] = match;
    if (!told.has(name)) told.set(name, quoted ?? bare.replace(/[.!?)]$/, ""));
  }
  return told;
}
