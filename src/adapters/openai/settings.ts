/** Writes the settings of a caller of another dialect, as far as both wires have them; each wire spells them its way. */
import { type Dialect, fieldsOf, typeOf } from "../../core/item.ts";
import type { Format, JsonSchema, Settings, Tool } from "../../core/turn.ts";
import { createIsCustom } from "../custom.ts";
import { refuseChoice } from "../failures.ts";
import type { JsonObject } from "../json.ts";

/** How a wire spells what both have. */
export interface Spelling {
  readonly dialect: Dialect;
  /** Chat nests fields under the name of their type, responses does not. */
  write(type: string, fields: JsonObject): JsonObject;
  /** The format of a custom tool's input. */
  writeToolFormat(format: unknown): unknown;
  /** What a function has unless its tool says otherwise. */
  readonly parameters?: JsonSchema;
  readonly strict?: boolean;
}

export function commonSettings(settings: Settings, spelling: Spelling): JsonObject {
  const tools = settings.tools.flatMap((tool) => writeTool(tool, spelling) ?? []);
  const isOffered = tools.length > 0;
  return {
    temperature: settings.temperature,
    top_p: settings.topP,
    presence_penalty: settings.presencePenalty,
    frequency_penalty: settings.frequencyPenalty,
    service_tier: settings.serviceTier,
    tools: isOffered ? tools : undefined,
    tool_choice: writeToolChoice(settings, isOffered, spelling),
    parallel_tool_calls: isOffered ? settings.parallelToolCalls : undefined,
    ...Object.fromEntries(common.map((name) => [name, settings.native?.fields[name]])),
  };
}

/** Fields with the same name and meaning on both wires. */
const common = ["prompt_cache_key", "prompt_cache_retention", "safety_identifier"];

function writeTool(tool: Tool, spelling: Spelling): JsonObject | undefined {
  switch (tool.type) {
    case "function": {
      const { name, description, parameters = spelling.parameters, strict = spelling.strict } = tool;
      return spelling.write("function", { name, description, parameters, strict });
    }
    case "custom": {
      const { name, description, format } = tool;
      return spelling.write("custom", { name, description, format: spelling.writeToolFormat(format) });
    }
    case "other":
      return fieldsOf(tool.extra, spelling.dialect);
  }
}

/** Without a tool on offer only a choice that needs one matters; one that cannot be met is refused, never left out. */
function writeToolChoice({ toolChoice: choice, tools }: Settings, isOffered: boolean, spelling: Spelling): unknown {
  switch (choice?.type) {
    case undefined:
      return undefined;
    case "auto":
    case "none":
      return isOffered ? choice.type : undefined;
    case "required":
      return isOffered ? "required" : refuseChoice("It requires a call, but there is no tool");
    case "tool":
      return spelling.write(createIsCustom(tools)(choice.name) ? "custom" : "function", { name: choice.name });
    case "other":
      return (
        fieldsOf(choice.extra, spelling.dialect) ?? refuseChoice(`'${typeOf(choice.extra)}' is not a type of tool`)
      );
  }
}

/** The requested answer format; undefined if it is plain text. */
export function writeFormat(format: Format | undefined, spelling: Spelling): JsonObject | undefined {
  switch (format?.type) {
    case undefined:
    case "text":
      return undefined;
    case "json":
      return { type: "json_object" };
    case "schema": {
      const { type: _, ...schema } = format;
      return spelling.write("json_schema", schema);
    }
  }
}
