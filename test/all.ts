/**
 * Runs every test. A process a file would take most of the time, so most files share two, and those that load the
 * machine a third; what is about stored data runs once more on PostgreSQL. With `long`, runs those alone that have many
 * rounds, all of them and with seeds of the day.
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
/** What one engine alone promises is in a folder of its name. */
const stored = files.filter((file) => /^test\/(outlive|responses|sessions|store)\/[^/]*$/.test(file));
/** Where a pooler might do harm: what is asked in several round trips. */
const pooled = stored.filter((file) => /\/(rule|line|killed|keys|resume|conversations|archive)\.test\.ts$/.test(file));

const temporary = process.env["TMPDIR"] ?? makeFolderInMemory();
if (temporary !== undefined) process.env["TMPDIR"] = temporary;
const postgres = need("postgres");
const server = postgres.skip === false ? await findServer() : undefined;
const env = {
  ...process.env,
  ...(server !== undefined && { PORTICO_POSTGRES: server }),
  ...(isLong && { PORTICO_LONG: "1" }),
};

/** As results call a file. */
const nameOf = (file: string) => file.slice("test/".length);
const expected = files.map(nameOf);
const results: Result[] = [];
const complaints: string[] = [];

/** One server for all processes. */
async function findServer(): Promise<string> {
  return process.env["PORTICO_POSTGRES"] ?? (await openPostgres(wholeProcess)).address;
}

/** Runs test files in one process, which may be told apart by more variables, and by what its results' names begin with. */
async function run(tests: readonly string[], more: NodeJS.ProcessEnv = {}, prefix = ""): Promise<void> {
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
    env: { ...env, ...more },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let isWhole = false;
  for await (const line of createInterface(child.stdout)) {
    if (line === allTold) isWhole = true;
    else if (line.startsWith(mark)) tell(JSON.parse(line.slice(mark.length)), prefix);
    else console.log(`${prefix}${line}`);
  }
  if (!isWhole) complaints.push(`a process ended before its tests did: ${tests.join(" ")}`);
}

function tell(result: Result, prefix: string): void {
  results.push({ ...result, name: `${prefix}${result.name}` });
}

async function runApart(): Promise<void> {
  for (const tests of Object.values(apart)) await run(tests ?? []);
  await runOn("postgres", stored);
  await runOn("pgbouncer", pooled);
}

/** With fewer rounds: each takes longer, and what they are about is the same. */
async function runOn(engine: "postgres" | "pgbouncer", tests: readonly string[]): Promise<void> {
  const prefix = `${engine}: `;
  const why = postgres.skip || need(engine).skip;
  if (why !== false) {
    tell({ name: "the tests of stored data", outcome: "skipped", why, ms: 0 }, prefix);
    return;
  }
  const rounds = process.env["PORTICO_RUNS"] ?? (isLong ? undefined : "100");
  await run(tests, { PORTICO_ENGINE: engine, PORTICO_RUNS: rounds }, prefix);
  expected.push(...tests.map((file) => prefix + nameOf(file)));
}

await Promise.all([run(outer), run(rest), runApart()]);

const names = new Set<string>();
for (const { name, outcome, why } of results) {
  if (names.has(name)) complaints.push(`${name}: two tests have this name`);
  names.add(name);
  if (outcome === "failed") complaints.push(`${name}: ${why}`);
  if (outcome === "skipped") console.log(`skipped: ${name} (${why})`);
}
for (const file of expected) {
  if (!results.some(({ name }) => name.startsWith(`${file} > `))) complaints.push(`${file}: no test of it has run`);
}
for (const complaint of complaints) console.log(`✖ ${complaint}\n`);

const count = (outcome: Result["outcome"]) => results.filter((result) => result.outcome === outcome).length;
console.log(`${count("passed")} passed, ${complaints.length} failed, ${count("skipped")} skipped`);
process.exitCode = complaints.length === 0 && names.size > 0 ? 0 : 1;
