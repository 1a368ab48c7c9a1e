/** What happened to a turn, as the headers of its answer tell it. */
import type { Remark } from "../core/adapter.ts";
import type { Heading } from "../core/gateway.ts";

/** `isRepeated`: it is the answer to an earlier request with the same key. */
export function toHeaders(heading: Heading | undefined, isRepeated = false): Record<string, string> {
  if (heading === undefined) return {};
  const { told, contextItems, leftOutItems, session, remarks } = heading;
  const headers: Record<string, string> = {
    "x-portico-history": told,
    "x-portico-context": `${contextItems} items${leftOutItems > 0 ? `, ${leftOutItems} left out` : ""}`,
  };
  if (session !== undefined) headers["x-portico-session"] = session;
  if (isRepeated) headers["x-portico-replayed"] = "true";
  if (remarks.length > 0) Object.assign(headers, toRemarkHeaders(remarks));
  return headers;
}

/** Which adapters were tried first, and what of the request was left out or changed. */
export function toRemarkHeaders(remarks: readonly Remark[]): Record<string, string> {
  const tried = remarks.flatMap((remark) => (remark.type === "tried" ? [`${remark.adapter} (${remark.code})`] : []));
  const warnings = remarks.flatMap((remark) => {
    if (remark.type === "changed") return [`${remark.what} changed to ${remark.to}`];
    return remark.type === "left-out" ? [`${remark.what} left out`] : [];
  });
  return {
    ...(tried.length > 0 && { "x-portico-tried": toText(tried) }),
    ...(warnings.length > 0 && { "x-portico-warning": toText(warnings) }),
  };
}

const maxCharacters = 1_000;

/** Names in a remark may be the caller's own words, which a header cannot always carry. */
function toText(words: readonly string[]): string {
  return words
    .join(", ")
    .replaceAll(/[^\x20-\x7e]/g, "?")
    .slice(0, maxCharacters);
}
