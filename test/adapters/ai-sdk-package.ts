/** Installs a package for a test. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { makeFolder } from "../gateway.ts";

/** A folder with one package in its node_modules. */
export function installPackage(context: TestContext, name: string, source: string): string {
  const folder = makeFolder(context);
  const home = join(folder, "node_modules", name);
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), JSON.stringify({ name, type: "module", exports: "./index.js" }));
  writeFileSync(join(home, "index.js"), source);
  return folder;
}
