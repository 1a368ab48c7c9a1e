/** What a request says about its session: the first configured hint that it carries. */
import type { IncomingHttpHeaders } from "node:http";
import type { Requester } from "../core/place/place.ts";
import type { Hint } from "./settings.ts";

/** The hint prefixed with its kind, so that a header and a `user` of the same value name two sessions. */
export function readHint(
  hints: readonly Hint[],
  headers: IncomingHttpHeaders,
  user: string | undefined,
): Pick<Requester, "hint" | "hintsAtTalk"> {
  for (const hint of hints) {
    const value = hint.type === "user" ? user : headers[hint.name];
    if (typeof value !== "string" || value === "") continue;
    if (hint.type === "user") return { hint: `user:${value}`, hintsAtTalk: false };
    return { hint: `header:${hint.name}:${value}`, hintsAtTalk: true };
  }
  return { hint: undefined, hintsAtTalk: false };
}

/** The stored form of a hint that the operator writes as `user=ann` or `header:X-Session-Id=garden`; else undefined. */
export function toStoredHint(text: string): string | undefined {
  const [, user, header = "", value] = written.exec(text) ?? [];
  if (user !== undefined) return readHint([{ type: "user" }], {}, value).hint;
  const name = header.toLowerCase();
  return readHint([{ type: "header", name }], { [name]: value }, undefined).hint;
}

const written = /^(?:(user)|header:([^=\s]+))=(.+)$/s;
