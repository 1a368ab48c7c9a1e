/** Says why nothing can be written to the file now, or read from it, and what helps. */
import { GatewayError } from "../../core/errors.ts";
import { primary, primaryCodeOf } from "../codes.ts";
import { unavailable } from "../refusals.ts";

/** Strangers read it at `/readyz`, so it does not name the file; its cause is for the log. */
export function cannotStore(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError && thrown.code === "store_unavailable") return thrown;
  return because(troubles.get(primaryCodeOf(thrown) ?? systemCodeOf(thrown)) ?? unknownTrouble, thrown);
}

/** The same for reading. */
export function cannotRead(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (!isLasting(thrown)) return unavailable("The session store cannot be read now. Try again in a moment.", thrown);
  const why = primaryCodeOf(thrown) === primary.diskFails ? "its disk is failing. Check it." : damaged;
  return unavailable(`The session store cannot be read: ${why}`, thrown);
}

/** The data is damaged, or the disk cannot read it: trying again does not help. */
export function isLasting(thrown: unknown): boolean {
  return thrown instanceof SyntaxError || lasting.has(primaryCodeOf(thrown) ?? ok);
}

/** Turns written to a file that its name no longer leads to would be lost. */
export function fileGone(file: string): GatewayError {
  const cause = new Error(`${file} cannot be reached, or is not what was opened.`);
  return because(
    "its file was moved, deleted or replaced, or cannot be reached. Put it back, or restart the gateway.",
    cause,
  );
}

const ok = 0;
const lasting: ReadonlySet<number> = new Set([primary.diskFails, primary.corrupt, primary.notDatabase]);

/** SQLite's code for an error of the system. */
function systemCodeOf(thrown: unknown): number {
  return (thrown instanceof Error && "code" in thrown && systemCodes.get(thrown.code)) || ok;
}

const systemCodes = new Map<unknown, number>([
  ["EIO", primary.diskFails],
  ["EDQUOT", primary.diskFails],
  ["ENOSPC", primary.full],
]);

const itGoesOn = "a running gateway then continues by itself";
const busy = "another process has locked its file. Try again in a moment.";
const damaged =
  "its file is damaged. Stop the gateway, save what can be read with `portico sessions export`, and restore a backup.";
const unknownTrouble = "the gateway's log has the cause. Try again in a moment.";

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

function because(why: string, cause: unknown): GatewayError {
  return unavailable(`The session store cannot save turns now: ${why}`, cause);
}
