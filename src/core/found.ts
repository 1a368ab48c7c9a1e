/** What a tool search found, as the model that called it reads it: names and what they are for. */
import { nameInGroup, type Tool } from "./turn.ts";

/** Short, because the tools themselves are offered beside it; `join` names a tool in a group. */
export function describeFound(tools: readonly Tool[], join = nameInGroup): string {
  return JSON.stringify(tools.flatMap((tool) => describe(tool, join)));
}

interface Found {
  readonly name: string;
  readonly description?: string;
}

function describe(tool: Tool, join: (group: string, name: string) => string): readonly Found[] {
  if (tool.type !== "other") return [toFound(tool.name, tool.description)];
  if (tool.group === undefined) return [];
  const { name: group, tools, description: common } = tool.group;
  return tools.flatMap((inner) =>
    inner.type === "other" ? [] : [toFound(join(group, inner.name), inner.description ?? common)],
  );
}

const maxDescription = 200;

function toFound(name: string, description = ""): Found {
  const short = description.length > maxDescription ? `${description.slice(0, maxDescription)}…` : description;
  return short === "" ? { name } : { name, description: short };
}
