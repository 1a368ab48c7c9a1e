/** Settings that work, but of which the operator is warned. */
import type { FileShape } from "./config.ts";
import { isLoopback } from "./judges.ts";
import { type Path, problem, type Problem } from "./problem.ts";
import { tokensOf } from "./rules.ts";

const minTokenLength = 16;

/** `mode` has the file's permission bits, and `secret` is the place of one that stands in it. */
export function findDangers(file: FileShape, mode = 0, secret: Path | undefined, now: Date): readonly Problem[] {
  const { http } = file.gateway;
  const dangers: Problem[] = [];
  const warn = (path: Path, message: string): void => void dangers.push(problem(path, message));

  const listens = http.endpoints.compat_chat || http.endpoints.compat_responses;
  if (listens && !isLoopback(http.bind)) {
    const remedy = "put a proxy with TLS in front of it, or bind it to 127.0.0.1";
    warn(["gateway", "http", "bind"], `other machines reach ${http.bind} over plain HTTP; ${remedy}`);
  }
  for (const [path, token] of tokensOf(file)) {
    const remedy = "use a long random one (`portico token make`)";
    if (token.length < minTokenLength) warn(path, `shorter than ${minTokenLength} characters; ${remedy}`);
  }
  for (const [index, proxy] of http.trusted_proxies.entries()) {
    const place = ["gateway", "http", "trusted_proxies", index];
    if (/\/0+$/.test(proxy)) warn(place, "trusts everybody, so callers choose their address; name only your proxies");
  }
  for (const [index, { expires_at: expiresAt }] of http.tokens.entries()) {
    const place = ["gateway", "http", "tokens", index, "expires_at"];
    if (expiresAt !== undefined && new Date(expiresAt) <= now) warn(place, "has passed, so this token opens nothing");
  }
  if (secret !== undefined && (mode & 0o077) !== 0) {
    const remedy = "chmod 600 it, or refer to ${NAME} or a file";
    warn(secret, `is in a file that other users may read (mode ${(mode & 0o777).toString(8)}); ${remedy}`);
  }
  return dangers;
}
