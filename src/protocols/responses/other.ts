/** Items that only this dialect knows, such as hosted tool calls: shown as made, under ids that lead back to them. */
import { readAddress } from "../../core/conversation/address.ts";
import type { Exchange, Extra, OtherItem } from "../../core/item.ts";

/** The item as its maker knows it: its id, and the id of the item it answers, are the original ones again. */
export function readOther(values: Extra["fields"]): OtherItem {
  const shown = ["id", "approval_request_id"].filter((key) => isShown(values[key]));
  const fields =
    shown.length === 0 ? values : { ...values, ...Object.fromEntries(shown.map((key) => [key, toOwn(values[key])])) };
  const exchange = exchangeOf(fields);
  return { type: "other", extra: { dialect: "responses", fields }, ...(exchange !== undefined && { exchange }) };
}

/** The prefix of its id when shown: the id that its maker gave it, which others may name. */
export function ownIdOf({ extra }: OtherItem): string {
  const { id } = extra.fields;
  return typeof id === "string" && id !== "" ? id : nameless;
}

/** It comes whole, but is shown as in progress first. */
export function toWireOther({ extra: { fields } }: OtherItem, id: string, begins: boolean): object {
  return { ...fields, id, ...(begins && "status" in fields && { status: "in_progress" }) };
}

/** The id of an item whose maker gave it none. */
const nameless = "item";

function isShown(id: unknown): id is string {
  return typeof id === "string" && readAddress(id) !== undefined;
}

function toOwn(shown: unknown): string | undefined {
  const id = String(shown);
  const own = id.slice(0, id.lastIndexOf("_"));
  return own === nameless ? undefined : own;
}

/**
 * A call and its output share an id, whatever the tool; an approval names its request by the request's id, and the output
 * of a local shell may give that of its call as its own.
 */
function exchangeOf(fields: Extra["fields"]): Exchange | undefined {
  const type = String(fields["type"]);
  if (type === "mcp_approval_request") return toExchange("model", fields["id"]);
  if (type === "mcp_approval_response") return toExchange("tools", fields["approval_request_id"]);
  if (type === "local_shell_call_output") return toExchange("tools", fields["call_id"] ?? fields["id"]);
  return toExchange(type.endsWith("_output") ? "tools" : "model", fields["call_id"]);
}

function toExchange(side: Exchange["side"], id: unknown): Exchange | undefined {
  return typeof id === "string" ? { side, id } : undefined;
}
