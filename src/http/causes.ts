/** Why something failed that is not the caller's fault, in lines of their own: of requests, of turns, and of adapters that others stand in for. */
import type { ErrorCode, GatewayError } from "../core/errors.ts";
import type { Witness } from "../core/witness.ts";
import type { DoorLog } from "./lines.ts";

/** Troubles that last, and how long one is not told again. */
const lasting: ReadonlySet<ErrorCode> = new Set(["store_unavailable", "overloaded", "draining", "interrupted"]);
const lastingMs = 60_000;
/** There are a few kinds of them, unless a server words each of its refusals anew. */
const maxKinds = 100;

/** What is not the caller's failure has a line of its own, under the name of its request or turn. */
export function createCauses(log: DoorLog, nowMs: () => number): (error: GatewayError, under: object) => void {
  const isKnown = createMemory(nowMs);
  return (error, under) => {
    if (error.status < 500 || (lasting.has(error.code) && isKnown(error.message))) return;
    log.error({ ...under, code: error.code, err: error.cause ?? error }, error.message);
  };
}

/** Where another adapter answers, no request fails that would tell what is wrong with the first. */
export function createAdapterJournal(
  log: DoorLog,
  nowMs = () => performance.now(),
): Pick<Witness, "handedOn" | "rests" | "isBack"> {
  const isKnown = createMemory(nowMs);
  return {
    handedOn(adapter, { code, message, cause }) {
      // Servers put numbers of their own into each message.
      if (isKnown(`${adapter}: ${code}`)) return;
      const fields = { adapter, code, ...(cause !== undefined && { err: cause }) };
      log.error(fields, `The adapter '${adapter}' could not answer, and another was asked: ${message}`);
    },
    rests(adapter, why) {
      log.error({ adapter }, `The adapter '${adapter}' has failed too often, and rests for a moment: ${why}`);
    },
    isBack(adapter) {
      log.info({ adapter }, `The adapter '${adapter}' answers again.`);
    },
  };
}

/** Whether this was told within the last minute; if not, it is told now. */
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
