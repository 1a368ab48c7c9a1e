/** Writes tools and the choice among them; a custom tool becomes a function with one string. */
import type { JSONSchema7, LanguageModelV3FunctionTool, LanguageModelV3ToolChoice } from "@ai-sdk/provider";
import { typeOf } from "../../core/item.ts";
import type { Settings, Tool, ToolChoice } from "../../core/turn.ts";
import { toFunction } from "../custom.ts";
import { refuseChoice } from "../failures.ts";
import type { Call } from "./spec.ts";

/** `reportOmission` is told what no provider package can take. */
export function writeTools(
  settings: Settings,
  reportOmission: (what: string) => void,
): Pick<Call, "tools" | "toolChoice"> {
  const tools = settings.tools.flatMap((tool) => writeTool(tool, reportOmission));
  const toolChoice = writeChoice(settings.toolChoice, tools);
  return tools.length === 0 ? {} : { tools, toolChoice };
}

function writeTool(tool: Tool, reportOmission: (what: string) => void): LanguageModelV3FunctionTool[] {
  switch (tool.type) {
    case "function": {
      const { name, description, parameters = {}, strict } = tool;
      // The provider checks the schema; some want these two keywords even if the caller left them out.
      const inputSchema = { type: "object", properties: {}, ...parameters } as JSONSchema7;
      return [{ type: "function", name, description, inputSchema, strict }];
    }
    case "custom":
      return writeTool(toFunction(tool), reportOmission);
    case "other":
      reportOmission(`tool ${typeOf(tool.extra)}`);
      return [];
  }
}

function writeChoice(
  choice: ToolChoice | undefined,
  tools: readonly LanguageModelV3FunctionTool[],
): LanguageModelV3ToolChoice | undefined {
  switch (choice?.type) {
    case undefined:
      return undefined;
    case "auto":
    case "none":
      return { type: choice.type };
    case "required":
      return tools.length > 0 ? { type: "required" } : refuseChoice("It requires a call, but there is no tool");
    case "tool":
      return tools.some((tool) => tool.name === choice.name)
        ? { type: "tool", toolName: choice.name }
        : refuseChoice(`'${choice.name}' is not a tool`);
    case "other":
      return refuseChoice(`'${typeOf(choice.extra)}' is not a type of tool`);
  }
}
