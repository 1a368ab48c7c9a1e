import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..");
const source = join(root, "src");
const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));

/** What each folder may import from; a folder may always import from itself. `types` allows `import type` only. */
const rules: Readonly<Record<string, { readonly folders: readonly string[]; readonly types?: readonly string[] }>> = {
  core: { folders: [] },
  config: { folders: [], types: ["core"] },
  protocols: { folders: ["core"] },
  adapters: { folders: ["core"] },
  stores: { folders: ["core"] },
  archive: { folders: ["core"] },
  http: { folders: ["core", "protocols"] },
  cli: { folders: ["core", "config", "protocols", "adapters", "stores", "archive", "http", ""] },
  "": { folders: ["core", "config", "protocols", "adapters", "stores", "archive", "http", "cli"] },
};

/** Folders whose subfolders never import from each other. */
const layers = new Set(["protocols", "adapters", "stores"]);

interface Import {
  readonly file: string;
  readonly target: string;
  readonly typesOnly: boolean;
}

const imports: readonly Import[] = files.flatMap((file) => {
  const text = readFileSync(join(source, file), "utf8");
  return [
    ...text.matchAll(/^(?:import|export)\s+(type\s+)?(?:[\w*{][^;"']*?\sfrom\s+)?"([^"]+)"|\bimport\("([^"]+)"\)/gm),
  ].map((match) => ({ file, target: match[2] ?? match[3] ?? "", typesOnly: match[1] !== undefined }));
});

function folderOf(path: string): string {
  return path.includes("/") ? (path.split("/")[0] ?? "") : "";
}

/** The source file that a relative import names. */
function resolve(entry: Import): string {
  return relative(source, join(source, dirname(entry.file), entry.target));
}

const inner = imports.filter((entry) => entry.target.startsWith("."));

test("the rules are checked on real imports", () => {
  assert.ok(files.length > 30, `only ${files.length} files were read`);
  assert.ok(inner.length > 100, `only ${inner.length} imports were read`);
});

test("imports go down only", () => {
  const broken = inner.filter((entry) => {
    const [from, to] = [folderOf(entry.file), folderOf(resolve(entry))];
    if (from === to) return false;
    const allowed = rules[from];
    return !(allowed?.folders.includes(to) || (entry.typesOnly && allowed?.types?.includes(to)));
  });
  assert.deepEqual(broken, []);
});

test("every folder has a rule", () => {
  assert.deepEqual(
    [...new Set(files.map(folderOf))].filter((folder) => rules[folder] === undefined),
    [],
  );
});

test("a protocol, an adapter or a store never imports from another one", () => {
  const broken = inner.filter((entry) => {
    const [fromLayer, fromFolder, ...fromRest] = entry.file.split("/");
    const [toLayer, toFolder, ...toRest] = resolve(entry).split("/");
    if (fromLayer !== toLayer || !layers.has(fromLayer ?? "")) return false;
    if (fromRest.length === 0 || toRest.length === 0) return false;
    // adapters/http is the upstream client that adapters share, adapters/media what they know of pictures and files.
    return fromFolder !== toFolder && !(fromLayer === "adapters" && (toFolder === "http" || toFolder === "media"));
  });
  assert.deepEqual(broken, []);
});

test("the core uses no package, no platform, no clock, no randomness and no environment", () => {
  const outer = imports.filter((entry) => folderOf(entry.file) === "core" && !entry.target.startsWith("."));
  assert.deepEqual(outer, []);
  for (const file of files.filter((file) => folderOf(file) === "core")) {
    const text = readFileSync(join(source, file), "utf8");
    assert.doesNotMatch(text, /new Date\(|Date\.now|Math\.random|\bprocess\.|setTimeout|setInterval|\bBuffer\b/, file);
  }
});

test("no source file has more than 400 lines", () => {
  const long = files.filter((file) => readFileSync(join(source, file), "utf8").split("\n").length > 401);
  assert.deepEqual(long, []);
});

test("every file starts with a sentence that says what it is for", () => {
  const unexplained = files.filter((file) => !readFileSync(join(source, file), "utf8").startsWith("/**"));
  assert.deepEqual(unexplained, []);
});

test("only the command line writes to the terminal", () => {
  const printing = files.filter(
    (file) =>
      folderOf(file) !== "cli" &&
      /(?<!\/)\bconsole\.|process\.std(out|err)/.test(readFileSync(join(source, file), "utf8")),
  );
  assert.deepEqual(printing, []);
});
