/** Keeps what was compiled for the other test files, as each of them runs in a process of its own. */
import { enableCompileCache } from "node:module";

enableCompileCache("node_modules/.cache/compiled");
