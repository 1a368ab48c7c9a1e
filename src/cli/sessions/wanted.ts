/** Which sessions a command is about: named one by one, or found by a hint. */
import { GatewayError } from "../../core/errors.ts";
import type { SessionStore } from "../../core/store.ts";
import { findUnderHint, findWanted, type Wanted } from "../../core/wanted.ts";
import { toStoredHint } from "../../http/hint.ts";
import { toTurnId } from "../../protocols/chat/completion.ts";
import { type Arguments, UsageError } from "../command.ts";

/** How sessions are found without their ids. */
export const hintOptions = {
  user: { value: "NAME", summary: "The sessions of this `user`." },
  hint: { value: "HINT", summary: "The sessions under this hint, e.g. header:X-Session-Id=garden." },
  owner: { value: "NAME", summary: "Only those of this owner: a token's name, or `default`." },
};

/** The note on hints in a command's help. */
export const ownersNote = "A hint finds one session of every owner that has one, unless --owner names one.";

/** The same where an ID will do too. */
export const wantedNotes = [
  "ID is one of `portico sessions list`; answers have it in the header x-portico-session.",
  "It may also be the id of a response or chat completion outside of sessions.",
  ownersNote,
];

/** The hint's stored form. */
export function readHintOption({ options: { user, hint } }: Arguments): string | undefined {
  if (user !== undefined && hint !== undefined) throw new UsageError("--user and --hint cannot be used together.");
  const written = user === undefined ? hint : `user=${user}`;
  if (written === undefined) return undefined;
  const stored = toStoredHint(written);
  if (stored !== undefined) return stored;
  throw new UsageError(`The option '--hint' needs a hint such as header:X-Session-Id=garden, not '${written}'.`);
}

/** Returns what finds the sessions; throws at once if the arguments are invalid, later if something is missing. */
export function readWanted(given: Arguments, usage: string): (store: SessionStore) => Promise<readonly Wanted[]> {
  const { positionals, options } = given;
  const hint = readHintOption(given);
  if (hint !== undefined && positionals.length > 0) throw new UsageError("An ID and a hint cannot be used together.");
  if (hint === undefined && options["owner"] !== undefined) throw new UsageError("--owner needs --user or --hint.");
  if (hint === undefined && positionals.length === 0) {
    throw new UsageError(`An ID or a hint is missing. Usage: portico ${usage}`);
  }
  return async (store) => {
    if (hint === undefined) return Promise.all(positionals.map((id) => findWanted(store, toTurnId(id))));
    const found = await findUnderHint(store, hint, options["owner"]);
    if (found.length === 0) throw new GatewayError("not_found", "There is no session under this hint.");
    return found;
  };
}
