/** Logs failures that are not the caller's fault: of requests, of turns, and of adapters that others stand in for. */
import type { ErrorCode, GatewayError } from "../core/errors.ts";
import type { Observer } from "../core/observer.ts";
import type { DoorLog } from "./lines.ts";

/** Lasting problems, and for how long one is not repeated. */
const lasting: ReadonlySet<ErrorCode> = new Set(["store_unavailable", "overloaded", "draining", "interrupted"]);
const lastingMs = 60_000;
/** There are few kinds, unless a server words every refusal differently. */
const maxKinds = 100;

/** Logs a failure that is not the caller's on its own line, with the id of its request or turn. */
export function createCauses(log: DoorLog, nowMs: () => number): (error: GatewayError, under: object) => void {
  const isKnown = createMemory(nowMs);
  return (error, under) => {
    if (error.status < 500 || (lasting.has(error.code) && isKnown(error.message))) return;
    log.error({ ...under, code: error.code, err: error.cause ?? error }, error.message);
  };
}

/** Logs why adapters fail: when another one answers, no request fails that would show it. */
export function createAdapterJournal(
  log: DoorLog,
  nowMs = () => performance.now(),
): Pick<Observer, "fellBack" | "breakerOpened" | "breakerClosed"> {
  const isKnown = createMemory(nowMs);
  return {
    fellBack(adapter, { code, message, cause }) {
      // Servers put varying numbers into their messages.
      if (isKnown(`${adapter}: ${code}`)) return;
      const fields = { adapter, code, ...(cause !== undefined && { err: cause }) };
      log.error(fields, `The adapter '${adapter}' could not answer, so another was asked: ${message}`);
    },
    breakerOpened(adapter, why) {
      log.error({ adapter }, `The adapter '${adapter}' has failed too often, so its circuit breaker is open: ${why}`);
    },
    breakerClosed(adapter) {
      log.info({ adapter }, `The adapter '${adapter}' answers again.`);
    },
  };
}

/** Whether a text was seen within the last minute; if not, it is now. */
function createMemory(nowMs: () => number): (text: string) => boolean {
  const toldAt = new Map<string, number>();
  return (text) => {
    const now = nowMs();
    const told = toldAt.get(text);
    if (told !== undefined && now - told < lastingMs) return true;
    if (toldAt.size >= maxKinds) toldAt.clear();
    toldAt.set(text, now);
    return false;
  };
}
