/**
 * Caches compiled code for the other test files and for the programs that they start, each of which is its own process.
 */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

/**
 * The folder, for programs with their own environment; the others inherit it. A killed program caches nothing itself.
 */
export const compiled = fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url));

enableCompileCache(compiled);
process.env["NODE_COMPILE_CACHE"] = compiled;
