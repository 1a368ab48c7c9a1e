/**
 * Runs every test. A process a file would take most of the time, so most files share two, and those that load the
 * machine a third. With `long`, runs those alone that have many rounds, all of them and with seeds of the day.
 */
import { spawn } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { makeFolderInMemory } from "./harness/in-memory.ts";
import { need } from "./harness/needs.ts";
import { openPostgres, wholeProcess } from "./harness/postgres.ts";
import { allTold, mark, type Result } from "./harness/reporter.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const isLong = process.argv.includes("long");

const all = globSync("test/**/*.test.ts", { cwd: root }).toSorted();
const files = isLong ? all.filter((file) => readFileSync(`${root}/${file}`, "utf8").includes("PORTICO_LONG")) : all;
const groups = Object.groupBy(files, (file) => {
  if (isLong) return file;
  if (file.startsWith("test/load/")) return "load";
  return /^test\/(cli|config|http|sessions)\//.test(file) ? "outer" : "rest";
});
const { outer = [], rest = [], ...apart } = groups;

const temporary = process.env["TMPDIR"] ?? makeFolderInMemory();
if (temporary !== undefined) process.env["TMPDIR"] = temporary;
const postgres = process.env["PORTICO_POSTGRES"] ?? (await startPostgres());
const env = {
  ...process.env,
  ...(postgres !== undefined && { PORTICO_POSTGRES: postgres }),
  ...(isLong && { PORTICO_LONG: "1" }),
};

const results: Result[] = [];
const complaints: string[] = [];

/** One server for all processes, where there is the program. */
async function startPostgres(): Promise<string | undefined> {
  return need("postgres").skip === false ? (await openPostgres(wholeProcess)).address : undefined;
}

/** Runs test files in one process. */
async function run(tests: readonly string[]): Promise<void> {
  if (tests.length === 0) return;
  const timeout = `--test-timeout=${isLong ? 7_200_000 : 120_000}`;
  const options = [
    "--import=./test/harness/compiled.ts",
    "--test",
    "--test-isolation=none",
    "--test-force-exit",
    timeout,
  ];
  const reporter = "--test-reporter=./test/harness/reporter.ts";
  const child = spawn(process.execPath, [...options, reporter, ...tests], {
    cwd: root,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let isWhole = false;
  for await (const line of createInterface(child.stdout)) {
    if (line === allTold) isWhole = true;
    else if (line.startsWith(mark)) results.push(JSON.parse(line.slice(mark.length)));
    else console.log(line);
  }
  if (!isWhole) complaints.push(`a process ended before its tests did: ${tests.join(" ")}`);
}

async function runInTurn(groups: readonly (readonly string[])[]): Promise<void> {
  for (const tests of groups) await run(tests);
}

await Promise.all([run(outer), run(rest), runInTurn(Object.values(apart).map((tests = []) => tests))]);

const names = new Set<string>();
for (const { name, outcome, why } of results) {
  if (names.has(name)) complaints.push(`${name}: two tests have this name`);
  names.add(name);
  if (outcome === "failed") complaints.push(`${name}: ${why}`);
  if (outcome === "skipped") console.log(`skipped: ${name} (${why})`);
}
for (const file of files) {
  const prefix = `${file.slice("test/".length)} > `;
  if (!results.some(({ name }) => name.startsWith(prefix))) complaints.push(`${file}: no test of it has run`);
}
for (const complaint of complaints) console.log(`✖ ${complaint}\n`);

const count = (outcome: Result["outcome"]) => results.filter((result) => result.outcome === outcome).length;
console.log(`${count("passed")} passed, ${complaints.length} failed, ${count("skipped")} skipped`);
process.exitCode = complaints.length === 0 && names.size > 0 ? 0 : 1;
