/** Settings that work, but of which the operator is warned. */
import type { AdapterShape, FileShape } from "./config.ts";
import type { Form } from "./form.ts";
import { isLoopback } from "./judges.ts";
import { maskSecrets } from "./mask.ts";
import { type Path, problem, type Problem } from "./problem.ts";
import { tokensOf } from "./rules.ts";

interface Circumstances {
  readonly form: Form;
  /** As it is written in the file. */
  readonly raw: unknown;
  readonly mode: number | undefined;
  readonly now: Date;
}

const minTokenLength = 16;

export function findDangers(file: FileShape, { form, raw, mode, now }: Circumstances): readonly Problem[] {
  const { http, auth } = file.gateway;
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
  for (const [index, { endpoints = [], expires_at: expiresAt }] of http.tokens.entries()) {
    const place = ["gateway", "http", "tokens", index];
    const off = endpoints.find((name) => name !== "metrics" && !http.endpoints[name]);
    if (off !== undefined) warn([...place, "endpoints"], `${off} is off; see gateway.http.endpoints`);
    if (expiresAt !== undefined && new Date(expiresAt) <= now) warn([...place, "expires_at"], "has passed");
  }
  if (http.console && (!listens || auth.token === undefined)) {
    const why = listens ? "without gateway.auth.token it shows no sessions" : "no endpoint is on, so nothing listens";
    warn(["gateway", "http", "console"], why);
  }
  for (const name of findUnreached(file)) {
    warn(["gateway", "adapters", name], "no model leads to it; name some in gateway.models, or in its own 'models'");
  }
  if (mode !== undefined && (mode & 0o077) !== 0) {
    const secrets: Path[] = [];
    maskSecrets(form, raw, new Map(), [], (path) => void secrets.push(path));
    const others = `is in a file that other users may read (mode ${(mode & 0o777).toString(8)})`;
    if (secrets[0] !== undefined) warn(secrets[0], `${others}; chmod 600 it, or refer to \${NAME} or a file`);
  }
  return dangers;
}

/** Adapters to which no request leads. */
function findUnreached({ gateway }: FileShape): readonly string[] {
  const adapters = Object.entries(gateway.adapters) as [name: string, adapter: AdapterShape][];
  const fallbacks = adapters.flatMap(([, { fallback }]) => fallback);
  const named = new Set([gateway.default_adapter, ...Object.values(gateway.models), ...fallbacks]);
  const isReached = ([name, { model, models }]: (typeof adapters)[number]): boolean =>
    named.has(name) || model !== undefined || Object.keys(models).length > 0;
  return adapters.filter((adapter) => !isReached(adapter)).map(([name]) => name);
}
