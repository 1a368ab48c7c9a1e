/** Adapts settings to a server that knows only functions: custom tools and the choice of one become functions. */
import type { Extra } from "../../../core/item.ts";
import type { Settings, Tool } from "../../../core/turn.ts";
import { toFunction } from "../../custom.ts";
import { isObject, type JsonObject, listAt, objectAt, textAt } from "../../json.ts";

export function toFunctions(settings: Settings): Settings {
  const tools = settings.tools.map((tool): Tool => (tool.type === "custom" ? toFunction(tool) : tool));
  return { ...settings, tools, native: adaptNative(settings.native) };
}

/** The caller's own fields are forwarded, so they must be adapted too. */
function adaptNative(native: Extra | undefined): Extra | undefined {
  if (native?.dialect !== "chat") return native;
  const { fields } = native;
  const tools = listAt(fields, "tools")?.map(adaptTool);
  return { ...native, fields: { ...fields, tools, tool_choice: adaptChoice(fields["tool_choice"]) } };
}

function adaptTool(entry: unknown): unknown {
  const custom = customOf(entry);
  if (custom === undefined) return entry;
  const { type, ...written } = toFunction({
    type: "custom",
    name: textAt(custom, "name") ?? "",
    description: textAt(custom, "description"),
    format: custom["format"],
  });
  return { type, function: written };
}

function adaptChoice(choice: unknown): unknown {
  const custom = customOf(choice);
  return custom === undefined ? choice : { type: "function", function: { name: custom["name"] } };
}

/** Some clients write its fields beside its type. */
function customOf(entry: unknown): JsonObject | undefined {
  return isObject(entry) && entry["type"] === "custom" ? (objectAt(entry, "custom") ?? entry) : undefined;
}
