/** Creates each adapter and, if it can list models, checks that its server answers. */
import { isTlsFault } from "../../adapters/http/failure.ts";
import { createAdapter } from "../../adapters/index.ts";
import type { AdapterConfig, Config } from "../../config/config.ts";
import { GatewayError, messageOf } from "../../core/errors.ts";
import type { Adapter } from "../../core/ports.ts";
import { type Finding, ok, problemWith, warning } from "./finding.ts";

/** How long a server may take to answer. */
const timeoutMs = 3_000;

/** In parallel: only the slowest one counts. */
export function judgeAdapters({ adapters, file }: Config, isOffline: boolean): Promise<readonly Finding[]> {
  return Promise.all(
    Object.entries(adapters).map(([name, adapter]) => judgeAdapter(`adapter ${name}`, adapter, file, isOffline)),
  );
}

async function judgeAdapter(
  about: string,
  chosen: AdapterConfig,
  file: string | undefined,
  isOffline: boolean,
): Promise<Finding> {
  const { type } = chosen;
  let adapter: Adapter;
  try {
    adapter = await createAdapter(chosen, file);
  } catch (thrown) {
    return problemWith(about, messageOf(thrown));
  }
  const finding =
    isOffline || adapter.models === undefined
      ? ok(about, `type ${type}, ready`)
      : await judgeServer(about, type, adapter.models());
  try {
    await adapter.close?.();
    return finding;
  } catch (thrown) {
    return finding.level === "ok" ? problemWith(about, `cannot be closed: ${messageOf(thrown)}`) : finding;
  }
}

/** Asks for the list of models: like a turn, it needs host name, connection, proxy and key, but it costs nothing. */
async function judgeServer(about: string, type: string, models: Promise<readonly string[]>): Promise<Finding> {
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(late.resolve, timeoutMs, "late");
  try {
    const listed = await Promise.race([models, late.promise]);
    if (listed !== "late") return ok(about, `type ${type}, answers, models: ${listed.length}`);
    return problemWith(about, `no answer within ${timeoutMs / 1000} s; check its address and the network`);
  } catch (thrown) {
    return explain(about, thrown);
  } finally {
    clearTimeout(timer);
  }
}

function explain(about: string, thrown: unknown): Finding {
  const message = messageOf(thrown);
  switch (thrown instanceof GatewayError ? thrown.code : undefined) {
    case "adapter_not_found":
    case "adapter_bad_request":
      return warning(about, `it answers, but has no list of models; if turns fail too, check its address (${message})`);
    case "adapter_rate_limit":
    case "overloaded":
      return warning(about, `it answers, but accepts nothing now; wait, or name a fallback (${message})`);
    case "adapter_refused":
      return problemWith(about, message);
    default:
      // It already says what to do.
      if (thrown instanceof Error && isTlsFault(thrown.cause)) return problemWith(about, message);
      return problemWith(about, `${message} Check its address and the network.`);
  }
}
