/**
 * Runs every test. A process for each file is what most of the time would go into, so those that keep to themselves share
 * one; those that start programs, or measure their own memory, have one each, side by side with it.
 */
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const sharing = /^test\/((adapters|config|core|http|protocols)\/|sdk)/;

const files = globSync("test/**/*.test.ts", { cwd: root }).map((file) => file.replaceAll("\\", "/"));
const { shared = [], apart = [] } = Object.groupBy(files, (file) => (sharing.test(file) ? "shared" : "apart"));

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

const one = start(["--test-isolation=none"], shared, "pipe");
const others = start(["--test-concurrency=3"], apart, "inherit");
const codes = await Promise.all([one.ended, others.ended]);
process.stdout.write((await one.told) ?? "");
process.exitCode = Math.max(...codes);
