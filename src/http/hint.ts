/** What a request says about its session: the first configured hint that it carries. */
import type { IncomingHttpHeaders } from "node:http";
import type { Hint } from "./settings.ts";

/** The hint with its kind before it, so that a header and a `user` of the same value name two sessions. */
export function readHint(
  hints: readonly Hint[],
  headers: IncomingHttpHeaders,
  user: string | undefined,
): string | undefined {
  for (const hint of hints) {
    const value = hint.type === "user" ? user : headers[hint.name];
    if (typeof value === "string" && value !== "")
      return hint.type === "user" ? `user:${value}` : `header:${hint.name}:${value}`;
  }
  return undefined;
}
