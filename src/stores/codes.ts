/** SQLite's result codes, for a store's own file and for the temporary files that every store may need. */

/** Its primary result codes. */
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

/** The code of an SQLite error; undefined for any other. */
export function primaryCodeOf(thrown: unknown): number | undefined {
  const code = codeOf(thrown);
  return code === undefined ? undefined : code & 0xff;
}

/** A killed process left a rollback journal, which a read-only connection cannot apply. A store never has one. */
export function hasJournal(thrown: unknown): boolean {
  return codeOf(thrown) === readOnlyRollback;
}

const readOnlyRollback = 776;

/** The extended code. */
function codeOf(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return undefined;
  return thrown.errcode;
}
