/** What the console's files must be: self-contained, and safe against markup in other people's text. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const folder = join(import.meta.dirname, "../../src/console");
const files = readdirSync(folder).map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }));
const scripts = files.filter(({ name }) => name.endsWith(".js"));
const page = files.find(({ name }) => name === "index.html")?.text ?? "";

test("the page imports only its own files, and types of the core", () => {
  const imports = scripts.flatMap(({ name, text }) =>
    [...text.matchAll(/^(\/\*\* @)?import .* from "([^"]+)"|\bimport\("([^"]+)"\)/gm)].map((match) => ({
      name,
      isType: match[1] !== undefined,
      target: match[2] ?? match[3] ?? "",
    })),
  );
  assert.ok(imports.length > 30, `only ${imports.length} imports were read`);
  const names = new Set(scripts.map(({ name }) => `./${name}`));
  assert.deepEqual(
    imports.filter(({ isType, target }) => !names.has(target) && !(isType && /^\.\.\/core\/\w+\.ts$/.test(target))),
    [],
  );
});

test("no script turns text into markup or code", () => {
  const risky =
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\b|new Function/;
  assert.deepEqual(
    scripts.filter(({ text }) => risky.test(text)).map(({ name }) => name),
    [],
  );
});

test("the page has no inline script, style or foreign address that its headers would refuse", () => {
  assert.doesNotMatch(page, /<style|\sstyle=|\son\w+=|<script(?![^>]* src=)|https?:/);
  const linked = [...page.matchAll(/(?:src|href)="console\/([^"]+)"/g)].map(([, name]) => name);
  assert.deepEqual(linked, ["style.css", "main.js"]);
});

test("every region has a unique accessible name, and lists keep their role", () => {
  const titles = [...page.matchAll(/aria-labelledby="([^"]+)"/g)].map(
    ([, id]) => new RegExp(`id="${id}"[^>]*>([^<]+)<`).exec(page)?.[1],
  );
  const labels = [...page.matchAll(/role="region" aria-label="([^"]+)"/g)].map(([, name]) => name);
  const names = [...titles, ...labels];
  assert.ok(names.length > 5);
  assert.deepEqual([...new Set(names)], names);
  assert.doesNotMatch(page, /<[ou]l[^>]* role=/);
});

test("every part of the page that a script uses is in a template", () => {
  const asked = scripts.flatMap(({ text }) =>
    [...text.matchAll(/\bpart\([^,()]+, "([^"]+)"/g)].map(([, name = ""]) => name),
  );
  assert.ok(asked.length > 30);
  assert.deepEqual(
    asked.filter((name) => !page.includes(`data-part="${name}"`)),
    [],
  );
});

test("every script begins with a sentence that describes it, and has at most 200 lines", () => {
  assert.deepEqual(
    scripts
      .filter(({ text }) => !/^\/\*\* [A-Z].*[^*]\*\/\n/.test(text) || text.split("\n").length > 201)
      .map(({ name }) => name),
    [],
  );
});
