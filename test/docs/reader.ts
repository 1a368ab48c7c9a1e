/** Does what a reader of a page would do, block by block, in an empty folder, and compares what comes with what is shown. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn, spawnSync, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { makeFolder } from "../harness/house.ts";
import { bareEnvironment, executable, root, runProgramIn, writeConfig } from "../harness/program.ts";
import { type Block, blocksOf } from "./pages.ts";

/** Shell blocks are run by the shell, with the reader's own curl: a machine without them cannot follow a page. */
export const missing =
  spawnSync("sh", ["-c", "command -v curl grep head"]).status === 0 ? false : "no sh or no curl here";

/** Kinds of blocks that are only read. */
const read = new Set(["console", "python", "nginx", "ini", "mjs", "ts", "dockerfile", "yaml"]);

/** Whether a block starts the gateway, and nothing else, and perhaps shows what it then prints. */
export function isStart({ kind, text }: Block): boolean {
  return kind === "console" && /^\$ [^\n]*npm start\n(?!.*^\$ )/ms.test(text);
}

/** Follows a page, and returns how many of its blocks were run. */
export async function follow(page: string, context: TestContext): Promise<number> {
  const reader = createReader(context);
  const blocks = blocksOf(page);
  let outputs: string[] = [];
  let output: string | undefined;
  let ran = 0;
  for (const [index, { kind, text }] of blocks.entries()) {
    const said = output;
    output = undefined;
    if (isStart({ kind, text })) {
      await reader.start(text.replace(/^\$ .*\n+/, ""));
    } else if (kind === "sh") {
      output = await reader.shell(text);
      ran++;
    } else if (kind === "js") {
      if (outputs.length === 0) outputs = await reader.scripts(scriptsFrom(blocks.slice(index)));
      output = outputs.shift();
      ran++;
    } else if (kind === "text" && said !== undefined) {
      assert.match(said.trimEnd(), toPattern(text.trimEnd()));
    } else if (kind === "json" && said !== undefined) {
      assertLike(JSON.parse(said), JSON.parse(text));
    } else if (kind === "json" && page === "README.md") {
      await reader.check(text);
    } else {
      assert.ok(kind === "json" || read.has(kind), `a block of ${page} is of the kind '${kind}', which is not run`);
    }
  }
  return ran;
}

/** The scripts up to the next block that needs a gateway or changes what they find. */
function scriptsFrom(blocks: readonly Block[]): readonly string[] {
  const end = blocks.findIndex(({ kind }) => kind === "sh" || kind === "console");
  const reachable = end === -1 ? blocks : blocks.slice(0, end);
  return reachable.filter(({ kind }) => kind === "js").map(({ text }) => text);
}

function createReader(context: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "portico-docs-"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"), "junction");
  const bare = bareEnvironment(folder);
  const env = { ...bare, PATH: `${join(folder, "bin")}${delimiter}${bare["PATH"]}` };
  // What an installed package puts into the reader's PATH.
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "bin/portico"), `#!/bin/sh\nexec node "$0.js" "$@"\n`, { mode: 0o755 });
  symlinkSync(process.execPath, join(folder, "bin/node"));
  symlinkSync(executable, join(folder, "bin/portico.js"));
  let gateway: Program | undefined;
  let address = "";
  const here = (text: string) => text.replaceAll("http://127.0.0.1:8600", address);

  const shell = begin("sh", ["-eu"], { cwd: folder, env, stdio: "pipe" });
  const mark = "the block has ended";

  async function stop(): Promise<void> {
    const stopping = gateway;
    gateway = undefined;
    stopping?.child.kill("SIGINT");
    if (stopping !== undefined) assert.deepEqual(await stopping.ended, [0, null]);
  }
  context.after(async () => {
    shell.child.kill();
    await stop().finally(() => rmSync(folder, { recursive: true, force: true }));
  });

  return {
    /** Starts the gateway, or restarts it, and compares what it prints with the lines that the page shows. */
    async start(shown: string): Promise<void> {
      await stop();
      gateway = begin(process.execPath, [executable, "start", "--port", "0"], {
        cwd: folder,
        // As npm does, which the page uses to start it.
        env: { ...env, npm_package_name: "portico" },
        stdio: ["ignore", "pipe", "ignore"],
      });
      const printed = await gateway.said((text) => /^ {2}config {4} .*\n/m.test(text));
      address = /listens on (\S+)/.exec(printed)?.[1] ?? "";
      assert.match(printed, toPattern(here(shown.trimEnd()), "start"));
    },
    /** One shell reads all blocks, so that a variable of one is available in the next. */
    async shell(text: string): Promise<string> {
      const output = shell.said((said) => said.includes(mark));
      shell.child.stdin?.write(`${here(text)}\necho "${mark}"\n`);
      return (await output).replace(`${mark}\n`, "").replaceAll("\r", "");
    },
    /** One process runs them in turn, as starting it takes longer than they do, and must end by itself after the last. */
    async scripts(texts: readonly string[]): Promise<string[]> {
      const own = JSON.stringify(pathToFileURL(join(root, "src", "index.ts")).href);
      for (const [index, text] of texts.entries()) {
        writeFileSync(join(folder, `script-${index}.mjs`), here(text).replace('"portico"', own));
      }
      const all = texts.map((_, index) => `await import("./script-${index}.mjs");`);
      writeFileSync(join(folder, "scripts.mjs"), all.join(`\nconsole.log("${mark}");\n`));
      const token = gateway === undefined ? undefined : readFileSync(join(folder, ".portico/token"), "utf8").trim();
      const options = { cwd: folder, env: { ...env, TOKEN: token } };
      return (await promisify(execFile)(process.execPath, ["scripts.mjs"], options)).stdout.split(`${mark}\n`);
    },
    /** A configuration is one that `portico check` finds nothing wrong with. */
    async check(text: string): Promise<void> {
      const own = makeFolder(context);
      writeConfig(own, text);
      const secrets = { PORTICO_TOKEN: "sk-0123456789abcdef", OPENAI_API_KEY: "sk-upstream-0123456789" };
      const { code, stderr } = await runProgramIn(context, own, secrets, "check").ended;
      assert.equal(code, 0, stderr);
      assert.doesNotMatch(stderr, /warning/);
    },
  };
}

interface Program {
  readonly child: ChildProcess;
  /** Its code and its signal. */
  readonly ended: Promise<unknown[]>;
  /** What it prints from now on, until that is enough. */
  said(isEnough: (text: string) => boolean): Promise<string>;
}

function begin(command: string, args: readonly string[], options: SpawnOptions): Program {
  const child = spawn(command, args, options);
  const ended = once(child, "close");
  let complaints = "";
  child.stderr?.on("data", (piece: Buffer) => void (complaints += piece.toString("utf8")));
  return {
    child,
    ended,
    said(isEnough) {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      let text = "";
      const collect = (piece: Buffer): void => {
        text += piece.toString("utf8");
        if (isEnough(text)) resolve(text);
      };
      child.stdout?.on("data", collect);
      void ended.then(([code]) => reject(new Error(`It ended with ${String(code)}, after: ${text}${complaints}`)));
      return promise.finally(() => child.stdout?.off("data", collect));
    },
  };
}

/** `…` on a page stands for anything on that line. */
function toPattern(shown: string, only: "start" | "all" = "all"): RegExp {
  const pattern = shown.split("…").map(RegExp.escape).join("[^\\n]*");
  return new RegExp(`^${pattern}${only === "all" ? "$" : ""}`);
}

/** Times differ, and strings follow the pattern that the page shows; the rest is equal. */
function assertLike(found: unknown, shown: unknown, path = ""): void {
  if (typeof shown === "string") return assert.match(String(found), toPattern(shown), path);
  if (/\.(created|created_at|completed_at)$/.test(path)) return assert.equal(typeof found, typeof shown, path);
  if (typeof shown !== "object" || shown === null) return assert.equal(found, shown, path);
  assert.deepEqual(Object.keys(found as object), Object.keys(shown), path);
  for (const [key, value] of Object.entries(shown)) {
    assertLike((found as Record<string, unknown>)[key], value, `${path}.${key}`);
  }
}
