/** All scripts of the Redis store. Those that write are fenced: they refuse what was sent on an older connection. */
export * from "./lua/import.ts";
export * from "./lua/lease.ts";
export * from "./lua/names.ts";
export * from "./lua/reading.ts";
export * from "./lua/removal.ts";
export * from "./lua/secrets.ts";
export * from "./lua/sessionless.ts";
export { readUse, tellUse } from "./lua/uses.ts";
export * from "./lua/writing.ts";
