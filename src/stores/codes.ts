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
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return undefined;
  return thrown.errcode & 0xff;
}
