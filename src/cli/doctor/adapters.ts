/** Creates an adapter and, if it can list models, checks that its server answers. */
import { isTlsFault } from "../../adapters/http/failure.ts";
import { createAdapter } from "../../adapters/index.ts";
import type { AdapterConfig } from "../../config/config.ts";
import { GatewayError, messageOf } from "../../core/errors.ts";
import type { Adapter } from "../../core/ports.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

/** How long a server may take to answer. */
const timeoutMs = 3_000;

export async function judgeAdapter(
  chosen: AdapterConfig,
  file: string | undefined,
  isOffline: boolean,
): Promise<Finding> {
  let adapter: Adapter;
  try {
    adapter = await createAdapter(chosen, file);
  } catch (thrown) {
    return problem(messageOf(thrown));
  }
  const models = isOffline ? undefined : adapter.models?.();
  const finding = models === undefined ? ok(`type ${chosen.type}, ready`) : await judgeServer(models, chosen);
  try {
    await adapter.close?.();
    return finding;
  } catch (thrown) {
    return finding.level === "ok" ? problem(`cannot be closed: ${messageOf(thrown)}`) : finding;
  }
}

/** Asks for the list of models: like a turn, it needs host name, connection, proxy and key, but it costs nothing. */
async function judgeServer(models: Promise<readonly string[]>, { type }: AdapterConfig): Promise<Finding> {
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(late.resolve, timeoutMs, "late");
  try {
    const listed = await Promise.race([models, late.promise]);
    if (listed !== "late") return ok(`type ${type}, answers, models: ${listed.length}`);
    return problem(`no answer within ${timeoutMs / 1000} s`, "check its address and the network");
  } catch (thrown) {
    return explain(thrown);
  } finally {
    clearTimeout(timer);
  }
}

const checkPath = "check its address, which for most servers ends with /v1";

function explain(thrown: unknown): Finding {
  const message = messageOf(thrown);
  switch (thrown instanceof GatewayError ? thrown.code : undefined) {
    case "adapter_not_found":
    case "adapter_bad_request":
      return warning("it answers, but has no list of models", `if turns fail too, ${checkPath} (${message})`);
    case "adapter_rate_limit":
    case "overloaded":
      return warning("it answers, but accepts nothing now", `wait, or name a fallback (${message})`);
    case "adapter_refused":
      return problem(message);
    default:
      // It already says what to do.
      if (thrown instanceof Error && isTlsFault(thrown.cause)) return problem(message);
      return problem(`${message} Check its address, whether it needs https://, and the network.`);
  }
}
