/** Chooses the tools that the model calls, and writes their arguments. */
import type { Settings, Tool } from "../../core/turn.ts";
import type { Utterance } from "./speech.ts";
import { findName, readNamedValues } from "./words.ts";

type Call = Extract<Utterance, { type: "call" }>;
type CallableTool = Exclude<Tool, { type: "other" }>;

/** What the text asks for is called, if it `mayAsk`; what the tool choice demands is called in any case. */
export async function chooseCalls(settings: Settings, text: string, mayAsk: boolean): Promise<readonly Call[]> {
  const { tools, demanded } = readChoice(settings);
  const asked = mayAsk || demanded ? await readCallLines(tools, text) : [];
  if (asked.length === 0 && (mayAsk || demanded)) {
    for (const tool of namedTools(tools, text)) asked.push(await toCall(tool, text));
  }
  const [first] = tools;
  if (asked.length === 0 && demanded && first !== undefined) asked.push(await toCall(first, text));
  return settings.parallelToolCalls === false ? asked.slice(0, 1) : asked;
}

/** The tools that may be called now, and whether one must be. */
function readChoice(settings: Settings): { readonly tools: readonly CallableTool[]; readonly demanded: boolean } {
  const choice = settings.toolChoice ?? { type: "auto" };
  const tools = settings.tools.filter((tool) => tool.type !== "other");
  switch (choice.type) {
    case "none":
      return { tools: [], demanded: false };
    case "required":
      return { tools, demanded: true };
    case "tool":
      return { tools: tools.filter(({ name }) => name === choice.name), demanded: true };
    case "allowed":
      return { tools: tools.filter(({ name }) => choice.names.includes(name)), demanded: choice.mode === "required" };
    case "auto":
    case "other":
      return { tools, demanded: false };
  }
}

/** Each line `CALL name {json}` is a call, as far as the tool may be called. */
async function readCallLines(tools: readonly CallableTool[], text: string): Promise<Call[]> {
  const calls: Call[] = [];
  for (const [, name, rest = ""] of text.matchAll(/^CALL[ \t]+(\S+)(.*)$/gm)) {
    const tool = tools.find((tool) => tool.name === name);
    if (tool === undefined) continue;
    const written = rest.trim();
    // Written arguments go out as they are, wrong ones too: a client must be able to see what it makes of them.
    if (written.startsWith("{") || (tool.type === "custom" && written !== "")) {
      calls.push({ type: "call", kind: tool.type, name: tool.name, text: written });
    } else {
      calls.push(await toCall(tool, tool.type === "custom" ? text : written));
    }
  }
  return calls;
}

function namedTools(tools: readonly CallableTool[], text: string): readonly CallableTool[] {
  return tools
    .map((tool) => ({ tool, at: findName(text, tool.name) }))
    .filter(({ at }) => at !== -1)
    .toSorted((one, other) => one.at - other.at)
    .map(({ tool }) => tool);
}

async function toCall(tool: CallableTool, text: string): Promise<Call> {
  const { type: kind, name } = tool;
  if (tool.type === "custom") return { type: "call", kind, name, text };
  // What checks samples takes long to load, and most turns need none.
  const { makeSample } = await import("./sample.ts");
  const wish = { optional: tool.strict === true, told: readNamedValues(text) };
  return { type: "call", kind, name, text: JSON.stringify(makeSample({ type: "object", ...tool.parameters }, wish)) };
}
