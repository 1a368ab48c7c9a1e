/** What SQLite's failures mean, and what whoever is refused because of them is told. */
import { type ErrorCode, GatewayError } from "../core/errors.ts";

/** SQLite's primary result codes, as far as we tell them apart. */
export const primary = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  diskFails: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notDatabase: 26,
} as const;

export interface Failure {
  readonly message: string;
  /** SQLite's number for it, with its details. */
  readonly number?: number | undefined;
  /** It was refused for a reason that its caller may read. */
  readonly code?: ErrorCode | undefined;
}

export function toFailure(thrown: unknown): Failure {
  if (!(thrown instanceof Error)) return { message: String(thrown) };
  if (thrown instanceof GatewayError) return { message: thrown.message, code: thrown.code };
  const number = "errcode" in thrown && typeof thrown.errcode === "number" ? thrown.errcode : undefined;
  return { message: thrown.message, number };
}

export function primaryOf(thrown: unknown): number | undefined {
  const { number } = toFailure(thrown);
  return number === undefined ? undefined : number & 0xff;
}

/** After a failed sync nobody knows what is on the disk, and the next sync may claim that all is well. */
export const isSyncFailure = ({ number }: Failure): boolean => number !== undefined && syncFailures.has(number);

/** SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC. */
const syncFailures: ReadonlySet<number> = new Set([1_034, 1_290]);

/** SQLITE_READONLY_DBMOVED: the path leads to another file than when it was opened, or to none. */
export const moved = 1_032;

/** It is the file's trouble, not that of what was to be written: others will fail as well. */
export const isLasting = ({ number = 0 }: Failure): boolean => troubles.has(number & 0xff);

const itGoesOn = "the gateway then goes on by itself";
const busy = "another process has locked its file. Try again in a moment.";
const damaged = "its file is damaged. Stop the gateway, export what can be read, and restore a backup.";

/** Strangers read it at `/readyz`, so it does not name the file. */
const troubles = new Map<number, string>([
  [primary.busy, busy],
  [primary.locked, busy],
  [primary.readOnly, `its file is read-only. Give the gateway's user write access; ${itGoesOn}.`],
  [primary.diskFails, `its disk is failing, or a quota is used up. Check both; ${itGoesOn}.`],
  [primary.corrupt, damaged],
  [primary.full, `its disk is full. Make room there; ${itGoesOn}.`],
  [primary.cannotOpen, `its file cannot be opened. Check it and its folder; ${itGoesOn}.`],
  [primary.notDatabase, damaged],
]);

export function cannotWrite(failure: Failure): GatewayError {
  if (failure.code !== undefined) return new GatewayError(failure.code, failure.message);
  const why = troubles.get((failure.number ?? 0) & 0xff) ?? "the log has the cause. Send the request again.";
  return unavailable(`The session store cannot save this now: ${why}`, new Error(failure.message));
}

/** Whatever else was thrown is a fault of ours. */
export function cannotRead({ message, number, code }: Failure): Error {
  if (code !== undefined) return new GatewayError(code, message);
  const cause = new Error(message);
  if (number === undefined) return cause;
  return unavailable(
    "The session store cannot be read now: its disk or its file may be damaged. The log has the cause.",
    cause,
  );
}

export function unavailable(message: string, cause?: unknown): GatewayError {
  return new GatewayError("store_unavailable", message, { retryAfterSeconds: 1, cause });
}
