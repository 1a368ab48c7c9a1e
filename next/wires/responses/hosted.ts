/** Items that only this dialect knows, such as hosted tool calls: kept as their maker wrote them, shown under ids that lead back. */
import type { Extra, Item, OtherItem } from "../../core/item.ts";

/** From a server, or from a caller, whom it was shown under another id. */
export function readOther(values: Extra["fields"]): OtherItem {
  const fields = { ...values };
  for (const key of ["id", "approval_request_id"]) {
    const shown = readShownId(fields[key]);
    if (shown !== undefined) fields[key] = shown.own === nameless ? undefined : shown.own;
  }
  return { type: "other", extra: { dialect: "responses", fields }, exchange: exchangeOf(fields) };
}

/** The id that its maker gave it, which others may name, and where it is kept. */
export function shownIdOf(item: Item): string {
  const { id = "" } = item;
  const own = item.type === "other" ? item.extra.fields["id"] : undefined;
  return typeof own === "string" && own !== "" ? `${own}${id.slice(nameless.length)}` : id;
}

/** The id under which an item is kept that is shown under this one. */
export function toKeptId(id: string): string {
  const shown = readShownId(id);
  return shown === undefined || ourPrefixes.has(shown.own) ? id : `${nameless}${shown.place}`;
}

const nameless = "item";
const ourPrefixes = new Set([nameless, "msg", "rs", "fc", "ctc", "fco", "cmp", "ref"]);

/** Ours end with the key of a turn and a place in it; before that stands the id that its maker gave it. */
function readShownId(id: unknown): { readonly own: string; readonly place: string } | undefined {
  const [, own, place] = typeof id === "string" ? (/^(.+)(_[0-9a-f]{20,64}_i?\d+)$/.exec(id) ?? []) : [];
  return own === undefined || place === undefined ? undefined : { own, place };
}

/**
 * A call and its output share an id, whatever the tool; an approval names its request by the request's id, and the output
 * of a local shell may give that of its call as its own.
 */
function exchangeOf({ type, id, call_id, approval_request_id }: Extra["fields"]): OtherItem["exchange"] {
  if (type === "mcp_approval_request") return toExchange("model", id);
  if (type === "mcp_approval_response") return toExchange("tools", approval_request_id);
  if (type === "local_shell_call_output") return toExchange("tools", call_id ?? id);
  return toExchange(String(type).endsWith("_output") ? "tools" : "model", call_id);
}

function toExchange(side: "model" | "tools", id: unknown): OtherItem["exchange"] {
  return typeof id === "string" && id !== "" ? { side, id } : undefined;
}
