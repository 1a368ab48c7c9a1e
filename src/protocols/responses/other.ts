/** Items that only this dialect knows, such as the calls of hosted tools: shown as their maker says them, under ids that lead back to them. */
import { readAddress } from "../../core/conversation/address.ts";
import type { Exchange, Extra, OtherItem } from "../../core/item.ts";

/** As its maker knows it: its id, and that of the item which it answers, are again what they were before they were shown. */
export function readOther(values: Extra["fields"]): OtherItem {
  const shown = ["id", "approval_request_id"].filter((key) => isShown(values[key]));
  const fields =
    shown.length === 0 ? values : { ...values, ...Object.fromEntries(shown.map((key) => [key, toOwn(values[key])])) };
  const exchange = exchangeOf(fields);
  return { type: "other", extra: { dialect: "responses", fields }, ...(exchange !== undefined && { exchange }) };
}

/** What its id begins with when it is shown: the id that its maker gave it, which others may name. */
export function ownIdOf({ extra }: OtherItem): string {
  const { id } = extra.fields;
  return typeof id === "string" && id !== "" ? id : nameless;
}

/** It comes all at once, but is told to begin before it ends. */
export function toWireOther({ extra: { fields } }: OtherItem, id: string, begins: boolean): object {
  return { ...fields, id, ...(begins && "status" in fields && { status: "in_progress" }) };
}

/** The id of an item to which its maker gave none. */
const nameless = "item";

function isShown(id: unknown): id is string {
  return typeof id === "string" && readAddress(id) !== undefined;
}

function toOwn(shown: unknown): string | undefined {
  const id = String(shown);
  const own = id.slice(0, id.lastIndexOf("_"));
  return own === nameless ? undefined : own;
}

/** Calls and their outputs have one id, whatever the tool; an approval names its request by the request's own. */
function exchangeOf(fields: Extra["fields"]): Exchange | undefined {
  const type = String(fields["type"]);
  if (type === "mcp_approval_request") return toExchange("model", fields["id"]);
  if (type === "mcp_approval_response") return toExchange("tools", fields["approval_request_id"]);
  return toExchange(type.endsWith("_output") ? "tools" : "model", fields["call_id"]);
}

function toExchange(side: Exchange["side"], id: unknown): Exchange | undefined {
  return typeof id === "string" ? { side, id } : undefined;
}
