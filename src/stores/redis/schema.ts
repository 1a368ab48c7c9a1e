/** The version of what is in Redis, and the secrets kept there. */
import { randomBytes } from "node:crypto";
import { GatewayError } from "../../core/errors.ts";
import { type Reply, type Script, toTexts } from "./script.ts";
import * as scripts from "./scripts.ts";

/**
 * The version that this program reads and writes. Version 2 has sets of a turn's followers, which a release that knows
 * only version 1 would neither read nor remove. A store of version 1 has none, so only its mark changes.
 */
export const newestVersion = 2;

/**
 * Marks a new store, and creates those of the named secrets that it lacks. Returns how many changes there were, and the
 * secrets. Refuses a store of a newer release, and leaves it as it was.
 */
export async function prepareStore(
  run: (script: Script, ...args: readonly string[]) => Promise<Reply>,
  shown: string,
  names: readonly string[],
): Promise<readonly string[]> {
  const wanted = names.flatMap((name) => [name, randomBytes(32).toString("base64url")]);
  const [version, ...found] = toTexts(await run(scripts.prepare, String(newestVersion), ...wanted));
  if (found.length > 0) return found;
  throw new GatewayError(
    "store_unavailable",
    `The session store ${shown} has schema version ${version}, and this release knows versions up to ${newestVersion}. Start the newer release that wrote it, or name another store, e.g. with ?prefix=NAME (gateway.sessions.store).`,
  );
}
