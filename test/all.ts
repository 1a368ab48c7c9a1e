/**
 * Runs every test, in three processes side by side. A process for each file is what most of the time would go into, so
 * nearly all of them share two; those that load the machine or measure their own memory have one each, in turn.
 */
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const lonely = /^test\/(sessions\/property|stores\/redis|whole\/(background|crash))/;
const parts = /^test\/((adapters|cli|config|core|http|protocols)\/|sdk)/;

const files = globSync("test/**/*.test.ts", { cwd: root }).map((file) => file.replaceAll("\\", "/"));
const { apart = [], ...shared } = Object.groupBy(files, (file) =>
  lonely.test(file) ? "apart" : parts.test(file) ? "parts" : "whole",
);

function start(args: readonly string[], tests: readonly string[], output: "inherit" | "pipe") {
  const options = [
    "--import",
    "./test/compiled.ts",
    "--test",
    "--test-timeout=120000",
    "--test-reporter=spec",
    ...args,
  ];
  const child = spawn(process.execPath, [...options, ...tests.toSorted()], {
    cwd: root,
    stdio: ["ignore", output, "inherit"],
  });
  const ended = new Promise<number>((resolve) => child.on("exit", (code) => resolve(code ?? 1)));
  return { ended, told: child.stdout === null ? undefined : buffer(child.stdout) };
}

const sharing = Object.values(shared).map((tests) => start(["--test-isolation=none"], tests, "pipe"));
const running = [...sharing, start(["--test-concurrency=1"], apart, "inherit")];
const codes = await Promise.all(running.map(({ ended }) => ended));
for (const { told } of sharing) process.stdout.write((await told) ?? "");
process.exitCode = Math.max(...codes);
