/** Chooses the tools that the model calls, and writes their arguments. */
import { setImmediate as breathe } from "node:timers/promises";
import type { Settings, Tool } from "../../core/turn.ts";
import type { Utterance } from "./speech.ts";
import { findNames, readNamedValues } from "./words.ts";

type Call = Extract<Utterance, { type: "call" }>;
type CallableTool = Exclude<Tool, { type: "other" }>;

/** Calls what the text asks for if it `mayAsk`, and what the tool choice demands in any case. */
export async function chooseCalls(settings: Settings, text: string, mayAsk: boolean): Promise<readonly Call[]> {
  const { tools, demanded } = readChoice(settings);
  if (!mayAsk && !demanded) return [];
  const written = await readCallLines(tools, text);
  const calls = written.length > 0 ? written : await callNamed(tools, text, demanded);
  return settings.parallelToolCalls === false ? calls.slice(0, 1) : calls;
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
    case "auto":
    case "other":
      return { tools, demanded: false };
  }
}

/** Each line `CALL name {json}` is a call, if the tool may be called. */
async function readCallLines(tools: readonly CallableTool[], text: string): Promise<Call[]> {
  const calls: Call[] = [];
  const byName = new Map(tools.toReversed().map((tool) => [tool.name, tool]));
  for (const [, name, rest = ""] of text.matchAll(/^CALL[ \t]+(\S+)(.*)$/gm)) {
    const tool = byName.get(name ?? "");
    if (tool === undefined) continue;
    const written = rest.trim();
    // Written arguments go out as they are, even wrong ones: a client's author must see how it handles them.
    if (written.startsWith("{") || (tool.type === "custom" && written !== "")) {
      calls.push({ type: "call", kind: tool.type, name: tool.name, text: written });
    } else {
      calls.push(await toCall(tool, text, await readNamedValues(written)));
    }
  }
  return calls;
}

/** The tools that the text names or, if it names none but a call is demanded, the first. */
async function callNamed(tools: readonly CallableTool[], text: string, demanded: boolean): Promise<readonly Call[]> {
  const byName = Map.groupBy(tools, ({ name }) => name);
  const found = await findNames(text, new Set(byName.keys()));
  const named = Array.from(found).flatMap((name) => byName.get(name) ?? []);
  const called = named.length === 0 && demanded ? tools.slice(0, 1) : named;
  if (called.length === 0) return [];
  const told = await readNamedValues(text);
  return Array.fromAsync(called, (tool) => toCall(tool, text, told));
}

/** A custom tool takes the text as is, a function the values `told` of its parameters. */
async function toCall(tool: CallableTool, text: string, told: ReadonlyMap<string, string>): Promise<Call> {
  const { type: kind, name } = tool;
  if (tool.type === "custom") return { type: "call", kind, name, text };
  // The checker of samples is slow to load, and most turns need none.
  const { makeSample } = await import("./sample.ts");
  // A text may ask for thousands of calls.
  await breathe();
  const options = { optional: tool.strict === true, told };
  return {
    type: "call",
    kind,
    name,
    text: JSON.stringify(makeSample({ type: "object", ...tool.parameters }, options)),
  };
}
