/** What every request for a turn is held to before it begins: how much is in it, and which models it names. */
import { GatewayError } from "../core/errors.ts";
import type { Ask } from "../core/turn.ts";
import type { Tool } from "../core/settings.ts";
import { isObject } from "../wires/fields.ts";
import { checkModel } from "./access.ts";
import type { Token } from "./settings.ts";

/** Of messages or items, and of tools. */
const most = 4_096;

export function checkAsk(token: Token, { model, items, itemsParam, settings }: Ask): void {
  if (items.length > most) throw tooMany("too_many_messages", itemsParam);
  if (settings.tools.length > most) throw tooMany("too_many_tools", "tools");
  if (token.models === undefined) return;
  checkModel(token, model, "model");
  // Some servers try others in its place, and some tools have one of their own, also those that items bring.
  const { models, fallbacks, tools } = settings.native?.fields ?? {};
  for (const [param, list] of Object.entries({ models, fallbacks, tools })) checkList(token, list, param);
  for (const item of items) if ("tools" in item) checkList(token, item.tools?.map(fieldsOf), itemsParam);
}

/** The entries are names, or objects with a `model`. */
function checkList(token: Token, list: unknown, param: string): void {
  for (const [at, entry] of (Array.isArray(list) ? list : []).entries()) {
    if (typeof entry === "string") checkModel(token, entry, `${param}[${at}]`);
    else if (isObject(entry) && typeof entry["model"] === "string")
      checkModel(token, entry["model"], `${param}[${at}].model`);
  }
}

function fieldsOf(tool: Tool): unknown {
  return tool.type === "other" ? tool.extra.fields : undefined;
}

function tooMany(code: "too_many_messages" | "too_many_tools", param: string): GatewayError {
  return new GatewayError(code, `Too many entries in '${param}': at most ${most} are taken.`, { param });
}
