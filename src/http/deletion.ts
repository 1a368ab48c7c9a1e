/** The warning of a deletion whose text is still in the store's files. */
import type { Operator } from "../core/store.ts";

/** The operator's command line prints it too. */
export const unfinishedErasure = "the deleted text stays in the store's files until another program stops reading them";

/** The headers of an answer to a deletion. */
export function toErasureHeaders(store: Pick<Operator, "hasUnfinishedErasure">): Readonly<Record<string, string>> {
  return store.hasUnfinishedErasure() ? { "x-portico-warning": unfinishedErasure } : {};
}
