/**
 * Runs every test, in five parallel processes. A process per file would take most of the time, so nearly all files
 * share three, with about as much work each. Those that collect garbage or start many programs share one that stays
 * small, as both cost the more, the more memory is in use. Those that load the machine or measure their own memory get
 * one each, in turn. Temporary files are in memory where that is possible.
 */
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { makeFolderInMemory } from "./in-memory.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const separate = /^test\/(sessions\/property|whole\/(background|crash))/;
const small =
  /^test\/(adapters\/(command|module|tiny-pieces)|core\/live\.|http\/(arrivals|resent)|stores\/redis-cluster)/;
const stores = /^test\/stores\//;
const outer = /^test\/((adapters|cli|config|http|sessions)\/|sdk)/;

const files = globSync("test/**/*.test.ts", { cwd: root }).map((file) => file.replaceAll("\\", "/"));
const { apart = [], ...shared } = Object.groupBy(files.toSorted(), (file) => {
  if (separate.test(file)) return "apart";
  if (small.test(file)) return "small";
  if (stores.test(file)) return "stores";
  return outer.test(file) ? "outer" : "rest";
});

const given = process.env["TMPDIR"];
// A socket's path has at most 104 bytes, and shells would have to quote other characters.
const isPlain = given !== undefined && /^[\w./-]{1,64}$/.test(given);
const temporary = isPlain ? given : (makeFolderInMemory() ?? given);
const env = temporary === undefined ? process.env : { ...process.env, TMPDIR: temporary };

function start(args: readonly string[], tests: readonly string[], output: "inherit" | "pipe") {
  const imports = ["./test/compiled.ts", "./test/unfollowed.ts"].map((file) => `--import=${file}`);
  // Ends what hangs. The longest tests take half a minute, and several times that where others use the machine.
  const options = [...imports, "--test-timeout=300000", "--test-reporter=spec", ...args];
  const child = spawn(process.execPath, [...options, ...tests], {
    cwd: root,
    env,
    stdio: ["ignore", output, "inherit"],
  });
  const ended = new Promise<number>((resolve) => child.on("exit", (code) => resolve(code ?? 1)));
  return { ended, told: child.stdout === null ? undefined : buffer(child.stdout) };
}

const quiet = Object.values(shared).map((tests) => start(["test/shared.ts"], tests, "pipe"));
const inTurn = ["--test", "--test-concurrency=1"];
const running = [...quiet, start(inTurn, apart, "inherit")];
const codes = await Promise.all(running.map(({ ended }) => ended));
for (const { told } of quiet) process.stdout.write((await told) ?? "");
process.exitCode = Math.max(...codes);
