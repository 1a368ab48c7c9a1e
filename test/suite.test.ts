/** The suite itself: it sees the product from outside; only the unit tests of `test/core/` import from inside. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..");
const files = globSync("test/**/*.{ts,js,mjs,cjs}", { cwd: root });

/** The files outside of `test/` that a file loads. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  const found = text.matchAll(
    /\bfrom\s+["'](\.[^"']+)["']|\bimport\s*\(?\s*["'`](\.[^"'`]+)["'`]|new URL\("(\.[^"]+)"/g,
  );
  return Array.from(found, (match) => normalize(join(file, "..", match[1] ?? match[2] ?? match[3] ?? ""))).filter(
    (target) => !target.startsWith("test/"),
  );
}

test("only unit tests of the core import internal modules, and only one file imports the public entry", () => {
  const unitTests = files.filter((file) => file.startsWith("test/core/"));
  const outside = unitTests.flatMap((file) =>
    importsOf(file).filter((target) => target.startsWith("src/") && !target.startsWith("src/core/")),
  );
  assert.deepEqual(outside, []);
  const others = files.filter((file) => !file.startsWith("test/core/"));
  const inner = others.flatMap((file) =>
    importsOf(file)
      .filter((target) => target.startsWith("src/"))
      .map((target) => `${file} imports ${target}`),
  );
  assert.deepEqual(new Set(inner), new Set(["test/harness/house.ts imports src/index.ts"]));
});

test("no file of the suite has more than 400 lines", () => {
  const lengths = files.map((file) => [file, readFileSync(join(root, file), "utf8").split("\n").length - 1] as const);
  assert.deepEqual(
    lengths.filter(([, length]) => length > 400),
    [],
  );
});

test("every file of the suite opens with a sentence that says what it is for", () => {
  const silent = files.filter((file) => !/^(#!.*\n)?\/\*/.test(readFileSync(join(root, file), "utf8")));
  assert.deepEqual(silent, []);
});
