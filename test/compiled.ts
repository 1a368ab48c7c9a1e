/** Keeps what was compiled for the other test files and for the programs that they start, each of which is a process of its own. */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

/** The folder, for programs that are given an environment of their own; the others have it. One that is killed keeps nothing itself. */
export const compiled = fileURLToPath(new URL("../node_modules/.cache/compiled", import.meta.url));

enableCompileCache(compiled);
process.env["NODE_COMPILE_CACHE"] = compiled;
