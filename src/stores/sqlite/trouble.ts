/** Says why nothing can be written to the file now, and what helps. */
import { GatewayError } from "../../core/errors.ts";
import { unavailable } from "../refusals.ts";

/** Strangers read it at `/readyz`, so it does not name the file; its cause is for the log. */
export function cannotKeep(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError && thrown.code === "store_unavailable") return thrown;
  return because(troubles.get(primaryCodeOf(thrown) ?? ok) ?? unknownTrouble, thrown);
}

/** Turns that are kept in a file which its name no longer leads to would be lost. */
export function isGone(file: string): GatewayError {
  const cause = new Error(`${file} cannot be reached, or is not what was opened.`);
  return because(
    "its file was moved, deleted or replaced, or cannot be reached. Put it back, or restart the gateway.",
    cause,
  );
}

/** The kind of an error of SQLite's; nothing when it is not one. */
export function primaryCodeOf(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return undefined;
  return thrown.errcode & 0xff;
}

export const notDatabase = 26;
export const diskFull = 13;
const ok = 0;

const itGoesOn = "The gateway goes on by itself";
const busy = "another process holds its file. Try again in a moment.";
const damaged = "its file is damaged. Stop the gateway, and go back to a backup.";
const unknownTrouble = "the gateway's log has the cause. Try again in a moment.";

/** By SQLite's primary result codes: BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB. */
const troubles = new Map<number, string>([
  [5, busy],
  [6, busy],
  [8, `its file may only be read. ${itGoesOn} once it may be written again.`],
  [10, `its disk fails. ${itGoesOn} once it can be written again.`],
  [11, damaged],
  [diskFull, `its disk is full. ${itGoesOn} once there is room again.`],
  [14, `its file cannot be opened. ${itGoesOn} once it can be.`],
  [notDatabase, damaged],
]);

function because(why: string, cause: unknown): GatewayError {
  return unavailable(`The session store cannot keep turns now: ${why}`, cause);
}
