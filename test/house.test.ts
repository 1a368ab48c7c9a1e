import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..");
const source = join(root, "src");
const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));

/** Whom each room may import from; a room may always import from itself. `types` allows `import type` only. */
const law: Readonly<Record<string, { readonly rooms: readonly string[]; readonly types?: readonly string[] }>> = {
  core: { rooms: [] },
  config: { rooms: [], types: ["core"] },
  protocols: { rooms: ["core"] },
  adapters: { rooms: ["core"] },
  stores: { rooms: ["core"] },
  archive: { rooms: ["core"] },
  http: { rooms: ["core", "protocols"] },
  cli: { rooms: ["core", "config", "protocols", "adapters", "stores", "archive", "http", ""] },
  "": { rooms: ["core", "config", "protocols", "adapters", "stores", "archive", "http", "cli"] },
};

/** Rooms within rooms: neighbours on one floor never meet. */
const floors = new Set(["protocols", "adapters", "stores"]);

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

function roomOf(path: string): string {
  return path.includes("/") ? (path.split("/")[0] ?? "") : "";
}

/** The source file that a relative import names. */
function resolve(entry: Import): string {
  return relative(source, join(source, dirname(entry.file), entry.target));
}

const inner = imports.filter((entry) => entry.target.startsWith("."));

test("the law is judged on real imports", () => {
  assert.ok(files.length > 30, `only ${files.length} files were read`);
  assert.ok(inner.length > 100, `only ${inner.length} imports were read`);
});

test("imports go down only", () => {
  const broken = inner.filter((entry) => {
    const [from, to] = [roomOf(entry.file), roomOf(resolve(entry))];
    if (from === to) return false;
    const allowed = law[from];
    return !(allowed?.rooms.includes(to) || (entry.typesOnly && allowed?.types?.includes(to)));
  });
  assert.deepEqual(broken, []);
});

test("every room stands in the law", () => {
  assert.deepEqual(
    [...new Set(files.map(roomOf))].filter((room) => law[room] === undefined),
    [],
  );
});

test("neighbours never meet: a dialect, an adapter or a store knows no other", () => {
  const broken = inner.filter((entry) => {
    const [fromFloor, fromRoom, ...fromRest] = entry.file.split("/");
    const [toFloor, toRoom, ...toRest] = resolve(entry).split("/");
    if (fromFloor !== toFloor || !floors.has(fromFloor ?? "")) return false;
    if (fromRest.length === 0 || toRest.length === 0) return false;
    // adapters/http is the upstream client that adapters share, adapters/media what they know of pictures and files.
    return fromRoom !== toRoom && !(fromFloor === "adapters" && (toRoom === "http" || toRoom === "media"));
  });
  assert.deepEqual(broken, []);
});

test("the core knows no package, no platform, no clock, no chance and no environment", () => {
  const outer = imports.filter((entry) => roomOf(entry.file) === "core" && !entry.target.startsWith("."));
  assert.deepEqual(outer, []);
  for (const file of files.filter((file) => roomOf(file) === "core")) {
    const text = readFileSync(join(source, file), "utf8");
    assert.doesNotMatch(text, /new Date\(|Date\.now|Math\.random|\bprocess\.|setTimeout|setInterval|\bBuffer\b/, file);
  }
});

test("a room is read in one sitting: no file has more than 400 lines", () => {
  const long = files.filter((file) => readFileSync(join(source, file), "utf8").split("\n").length > 401);
  assert.deepEqual(long, []);
});

test("every file opens with a sentence that says what it is for", () => {
  const silent = files.filter((file) => !readFileSync(join(source, file), "utf8").startsWith("/**"));
  assert.deepEqual(silent, []);
});

test("only the command line writes to the terminal", () => {
  const loud = files.filter(
    (file) =>
      roomOf(file) !== "cli" &&
      /(?<!\/)\bconsole\.|process\.std(out|err)/.test(readFileSync(join(source, file), "utf8")),
  );
  assert.deepEqual(loud, []);
});
