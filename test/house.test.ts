/** The laws of the house: a room imports only from the rooms below it, no imports form a circle, no file is too long. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { test } from "node:test";

const source = join(import.meta.dirname, "../src");
const files = globSync("**/*.ts", { cwd: source });

/** What each room may import from; the loose files of the root put everything together. */
const below: Readonly<Record<string, readonly string[]>> = {
  core: [],
  wires: ["core"],
  store: ["core"],
  config: ["core"],
  observe: ["core"],
  adapters: ["core", "wires"],
  http: ["core", "wires"],
  root: ["core", "wires", "store", "config", "observe", "adapters", "http"],
  cli: ["root", "core", "wires", "store", "config", "observe", "adapters", "http"],
};

/** Types included, and what is only loaded when it is needed. */
function importsOf(file: string): readonly string[] {
  const text = readFileSync(join(source, file), "utf8");
  return Array.from(text.matchAll(/\b(?:from|import)\s*\(?\s*"([^"]+)"/g), ([, target = ""]) => target);
}

const ours = new Map(
  files.map((file) => [
    file,
    importsOf(file)
      .filter((target) => target.startsWith("."))
      .map((target) => normalize(join(file, "..", target))),
  ]),
);

const roomOf = (file: string): string => (file.includes("/") ? (file.split("/")[0] ?? "") : "root");

test("a room imports from rooms below it alone, and core from nothing outside", () => {
  const wrong = [...ours].flatMap(([file, targets]) =>
    targets
      .filter((target) => roomOf(target) !== roomOf(file) && !below[roomOf(file)]?.includes(roomOf(target)))
      .map((target) => `${file} imports ${target}`),
  );
  const foreign = files
    .filter((file) => roomOf(file) === "core")
    .flatMap((file) =>
      importsOf(file).flatMap((target) => (target.startsWith(".") ? [] : `${file} imports ${target}`)),
    );
  assert.deepEqual([...wrong, ...foreign], []);
});

test("no files import each other in a circle, types included", () => {
  const done = new Set<string>();
  const circles: string[] = [];
  function visit(file: string, path: readonly string[]): void {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(" → "));
    if (path.includes(file) || done.has(file)) return;
    for (const target of ours.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  }
  for (const file of files) visit(file, []);
  assert.deepEqual(circles, []);
});

test("no source file has more than 400 lines", () => {
  const lengths = files.map((file) => [file, readFileSync(join(source, file), "utf8").split("\n").length - 1] as const);
  assert.deepEqual(
    lengths.filter(([, length]) => length > 400),
    [],
  );
});
