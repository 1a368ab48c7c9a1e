/** The pages are correct: the commands they show are run unchanged, and their lists are complete. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn, spawnSync, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { type ErrorCode, GatewayError } from "../src/core/errors.ts";
import { runHere } from "./cli/screen.ts";
import { compiled } from "./compiled.ts";

const root = join(import.meta.dirname, "..");
const manifest = JSON.parse(readPage("package.json")) as {
  readonly files: readonly string[];
  readonly scripts: { readonly start: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
};
const pages = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...readdirSync(join(root, "docs"))
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file}`),
];
// Shell blocks are run by the shell, with the reader's own curl: a machine without them cannot follow the page.
const missing = spawnSync("sh", ["-c", "command -v curl grep head"]).status === 0 ? false : "no sh or no curl here";

suite("the pages", () => {
  for (const page of [
    "README.md",
    "docs/http-api.md",
    "docs/sessions.md",
    "docs/responses.md",
    "docs/operating.md",
    "docs/stored-data.md",
    "docs/monitoring.md",
    "docs/terminal.md",
    "docs/embedding.md",
  ]) {
    test(`every command of ${page} does what the page says`, { skip: missing, timeout: 60_000 }, (context) =>
      follow(page, context),
    );
  }

  test("every configuration of docs/redis.md is valid", async (context) => {
    const reader = createReader(context);
    const files = blocksOf("docs/redis.md").filter(({ kind }) => kind === "json");
    assert.equal(files.length, 2);
    for (const { text } of files) await reader.check(text);
  });

  test("every link between pages resolves", () => {
    const broken = pages.flatMap((page) =>
      linksOf(page).filter(({ file, heading }) => {
        if (!existsSync(join(root, file))) return true;
        return heading !== undefined && !headingsOf(file).includes(heading);
      }),
    );
    assert.deepEqual(broken, []);
  });

  test("the index links to every page", () => {
    const listed = new Set(linksOf("docs/README.md").map(({ file }) => file));
    assert.deepEqual(
      pages.filter((page) => page.startsWith("docs/") && page !== "docs/README.md" && !listed.has(page)),
      [],
    );
  });

  test("the package contains every page that one of its pages links to", () => {
    const brought = ["README.md", "LICENSE", ...manifest.files];
    const isBrought = (file: string) => brought.some((each) => file === each || file.startsWith(`${each}/`));
    const absent = pages
      .filter(isBrought)
      .flatMap(linksOf)
      .filter(({ file }) => !isBrought(file));
    assert.deepEqual(absent, []);
  });

  test("the tree of the architecture has a line for every source file, and no other", () => {
    const tree = readTree();
    const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => file.replaceAll("\\", "/"));
    const absent = files.filter((file) => !tree.includes(file));
    const stale = tree.filter((file) => !files.includes(file));
    assert.deepEqual({ absent, stale }, { absent: [], stale: [] });
    assert.equal(tree.length, files.length);
  });

  test("every script that a page names exists", () => {
    const named = pages.flatMap((page) =>
      [...readPage(page).matchAll(/\bnpm run (?:--silent )?([\w:]+)/g)].map(([, name = ""]) => ({ page, name })),
    );
    assert.ok(named.length > 3);
    assert.deepEqual(
      named.filter(({ name }) => !(name in manifest.scripts)),
      [],
    );
  });

  test("every dependency has its reason, and no other package has one", () => {
    const named = [...readPage("docs/dependencies.md").matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name);
    const all = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies)];
    assert.deepEqual(named.toSorted(), all.toSorted());
  });

  test("the lock file lets every tool be installed, whatever Node the machine has", () => {
    const { packages } = JSON.parse(readPage("package-lock.json")) as {
      readonly packages: Readonly<Record<string, { readonly optional?: true; readonly engines?: { node: string } }>>;
    };
    // npm leaves an optional package out if its Node is too old: npm 10 runs on Node 18, the tools on their own Node.
    const demanding = Object.entries(packages).filter(
      ([, { optional, engines }]) => optional && engines !== undefined && !/^>=1[0-8]\b/.test(engines.node),
    );
    assert.deepEqual(demanding, [], "remove these engines from package-lock.json");
  });

  test("every route is on a page", () => {
    const paths = [...readPage("src/http/routes.ts").matchAll(/"(\/[\w/:*]+)"/g)].map(([, path = ""]) =>
      path.replace(":id", "{id}").replace(":item", "{item_id}").replace("/*", ""),
    );
    assert.ok(paths.length > 20);
    const text = pages.map(readPage).join("\n");
    assert.deepEqual(
      paths.filter((path) => !text.includes(path)),
      [],
    );
  });

  test("every error code is documented with its status and type", () => {
    const rows = [...readPage("docs/errors.md").matchAll(/^\| `(\w+)` +\| (\d+) +\| `(\w+)`/gm)];
    const [, table = ""] = /const codes = \{\n(.*?)\n\} as const/s.exec(readPage("src/core/errors.ts")) ?? [];
    const codes = [...table.matchAll(/^ {2}(\w+):/gm)].map(([, code]) => code as ErrorCode);
    assert.ok(codes.length > 30);
    assert.deepEqual(
      rows.map(([, code, status, type]) => ({ code, status: Number(status), type })),
      codes.map((code) => {
        const { status, type } = new GatewayError(code, "");
        return { code, status, type };
      }),
    );
  });

  test("every finer code that is sent instead is on a page", () => {
    const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((file) =>
      file.endsWith(".ts"),
    );
    const codes = sources.flatMap((file) =>
      [...readPage(`src/${file}`).matchAll(/wireCode: "(\w+)"/g)].map(([, code = ""]) => code),
    );
    assert.ok(codes.length > 5);
    const text = pages.map(readPage).join("\n");
    assert.deepEqual(
      codes.filter((code) => !text.includes(`\`${code}\``)),
      [],
    );
  });
});

interface Block {
  readonly kind: string;
  readonly text: string;
}

/** Does what a reader of the page would do, block by block, in an empty folder. */
async function follow(page: string, context: TestContext): Promise<void> {
  const reader = createReader(context);
  const blocks = blocksOf(page);
  let outputs: string[] = [];
  let output: string | undefined;
  let ran = 0;
  for (const [index, { kind, text }] of blocks.entries()) {
    const said = output;
    output = undefined;
    if (kind === "console" && /^\$ .*npm start$/m.test(text)) {
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
    } else if (kind === "json") {
      await reader.check(text);
    } else {
      assert.ok(
        ["console", "python", "nginx", "ini", "mjs", "dockerfile", "yaml"].includes(kind),
        `a block of ${page} is of the kind '${kind}', which is not run`,
      );
    }
  }
  assert.ok(ran >= 5, `only ${ran} blocks were run`);
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
  // Port 1 has no Ollama, so that a developer's own is never called.
  const path = `${join(folder, "bin")}${delimiter}${process.env.PATH ?? ""}`;
  const env = { PATH: path, HOME: folder, OLLAMA_HOST: "127.0.0.1:1", NODE_COMPILE_CACHE: compiled };
  const [, executable = "", command = ""] = manifest.scripts.start.split(" ");
  // What an installed package puts into the reader's PATH.
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "bin/portico"), `#!/bin/sh\nexec node "$0.js" "$@"\n`, { mode: 0o755 });
  symlinkSync(process.execPath, join(folder, "bin/node"));
  symlinkSync(join(root, executable), join(folder, "bin/portico.js"));
  let gateway: Program | undefined;
  let address = "";
  const here = (text: string) => text.replaceAll("http://127.0.0.1:8600", address);

  const shell = begin("sh", ["-eu"], { cwd: folder, env, stdio: ["pipe", "pipe", "inherit"] });
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
      gateway = begin(process.execPath, [join(root, executable), command, "--port", "0"], {
        cwd: folder,
        // As npm does, which the page uses to start it.
        env: { ...env, npm_package_name: "portico" },
        stdio: ["ignore", "pipe", "ignore"],
      });
      const printed = await gateway.said((text) => /^Try it:\n.*\n|^ {2}token {6}in .*\n/m.test(text));
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
      const own = JSON.stringify(pathToFileURL(join(root, "src/index.ts")).href);
      for (const [index, text] of texts.entries()) {
        writeFileSync(join(folder, `script-${index}.mjs`), here(text).replace('"portico"', own));
      }
      const all = texts.map((_, index) => `await import("./script-${index}.mjs");`);
      writeFileSync(join(folder, "scripts.mjs"), all.join(`\nconsole.log("${mark}");\n`));
      const token = gateway === undefined ? undefined : readFileSync(join(folder, ".portico/token"), "utf8").trim();
      const options = { cwd: folder, env: { ...env, TOKEN: token } };
      return (await promisify(execFile)(process.execPath, ["scripts.mjs"], options)).stdout.split(`${mark}\n`);
    },
    /** A configuration must pass the command line's check. */
    async check(text: string): Promise<void> {
      writeFileSync(join(folder, "example.json"), text, { mode: 0o600 });
      const variables = { PORTICO_TOKEN: "sk-0123456789abcdef", OPENAI_API_KEY: "sk-upstream-0123456789" };
      const { code, stderr } = await runHere(folder, ["check", "--config", "example.json"], { env: variables });
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
      void ended.then(([code]) => reject(new Error(`It ended with ${String(code)}, after: ${text}`)));
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

function readPage(page: string): string {
  return readFileSync(join(root, page), "utf8");
}

function blocksOf(page: string): readonly Block[] {
  return [...readPage(page).matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, kind = "", text = ""]) => ({ kind, text }));
}

function readTree(): readonly string[] {
  const tree = blocksOf("docs/architecture.md").find(({ text }) => text.startsWith("src/"))?.text ?? "";
  const folders: string[] = [];
  return tree.split("\n").flatMap((line) => {
    const [, indent = "", name = ""] = /^((?:│ {3}| {4})*)[├└]── (\S+)/.exec(line) ?? [];
    if (name === "") return [];
    folders.length = indent.length / 4;
    if (!name.endsWith("/")) return [folders.join("") + name];
    folders.push(name);
    return [];
  });
}

function linksOf(page: string): readonly { readonly page: string; readonly file: string; readonly heading?: string }[] {
  const prose = readPage(page).replaceAll(/^```.*?^```$/gms, "");
  return [...prose.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(([, target = "", heading]) => {
    const file = target === "" ? page : relative(root, join(root, dirname(page), target));
    return { page, file, ...(heading !== undefined && { heading }) };
  });
}

/** Headings as the anchors that links name. */
function headingsOf(page: string): readonly string[] {
  return [...readPage(page).matchAll(/^#+ (.*)$/gm)].map(([, text = ""]) =>
    text
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, "")
      .replaceAll(/\s/g, "-"),
  );
}
