/** Runs the given test files in this one process, once all are loaded: loading blocks it, on a busy machine for long. */
import { before } from "node:test";
import { pathToFileURL } from "node:url";

const { promise: loaded, resolve } = Promise.withResolvers<void>();
before(() => loaded, { timeout: Infinity });
try {
  for (const file of process.argv.slice(2)) await import(pathToFileURL(file).href);
} finally {
  resolve();
}
