/** What a request says about its session: the first configured hint that it carries. */
import type { IncomingHttpHeaders } from "node:http";
import type { Hint } from "./settings.ts";

export interface Hinted {
  /** With its kind in front, so that a header and a `user` of the same value name two sessions. */
  readonly value: string;
  /** It comes only from applications that show their whole history with every request. */
  readonly shows: boolean;
}

export function readHint(
  hints: readonly Hint[],
  headers: IncomingHttpHeaders,
  user: string | undefined,
): Hinted | undefined {
  for (const hint of hints) {
    const value = hint.type === "user" ? user : headers[hint.name];
    if (typeof value !== "string" || value === "") continue;
    if (hint.type === "user") return { value: `user:${value}`, shows: false };
    return { value: `header:${hint.name}:${value}`, shows: hint.name === "x-openwebui-chat-id" };
  }
  return undefined;
}

/** The value of a hint that the operator writes as `user=ann` or `header:X-Session-Id=garden`. */
export function toHintValue(written: string): string | undefined {
  const [, kind, value] = /^(user|header:[^=\s]+)=(.+)$/s.exec(written) ?? [];
  return kind && `${kind.toLowerCase()}:${value}`;
}
