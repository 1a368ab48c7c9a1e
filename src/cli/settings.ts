/** Finds the config file, reads it, and loads it. */
import { lstatSync, readFileSync, statSync } from "node:fs";
import { type Loaded, loadConfig, type Source } from "../config/load.ts";
import { ConfigError, type Problem } from "../config/problem.ts";
import { createToken } from "../config/token.ts";
import { codeOf } from "../core/errors.ts";
import { type Terminal, toPath } from "./terminal.ts";

/** The command-line options that change the settings. */
export interface SettingsOptions {
  readonly config?: string | undefined;
  readonly bind?: string | undefined;
  readonly port?: string | undefined;
}

/** Throws a ConfigError with everything that is wrong. */
export async function readSettings(options: SettingsOptions, terminal: Terminal): Promise<Loaded> {
  const file = findFile(options.config, terminal);
  const source = readSource(file, terminal);
  const overrides = toOverrides(options, terminal);
  const { adapterOptions } = await import("../adapters/index.ts");
  const loading = loadConfig(source, {
    env: terminal.env,
    probe: (url) => terminal.probe(url),
    adapterOptions,
    readText: (file) => readFileSync(file, "utf8"),
    now: terminal.now(),
    overrides,
  });
  const name = (problems: readonly Problem[]) => problems.map((problem) => nameOption(problem, overrides));
  try {
    const loaded = await loading;
    return { ...loaded, warnings: name(loaded.warnings) };
  } catch (thrown) {
    throw thrown instanceof ConfigError ? new ConfigError(name(thrown.problems), file) : thrown;
  }
}

/** Names the option if the value came from the command line. */
function nameOption({ path, message }: Problem, overrides: object): Problem {
  const key = /^gateway\.http\.(\w+)$/.exec(path)?.[1] ?? "";
  return { path: Object.hasOwn(overrides, key) ? `--${key}` : path, message };
}

export const configOption = {
  config: { value: "FILE", summary: "The config file. Default: $PORTICO_CONFIG, else ./portico.json." },
};

/** All problems of a configuration. */
export function describeProblems({ problems, file }: ConfigError): string {
  const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
  return `The configuration${file === undefined ? "" : ` in ${file}`} has ${count}:\n${listProblems(problems, "  ")}`;
}

/** Problems or warnings, one per line. */
export function listProblems(problems: readonly Problem[], indent: string): string {
  return problems.map(({ path, message }) => `${indent}${path}: ${message}`).join("\n");
}

function findFile(given: string | undefined, terminal: Terminal): string | undefined {
  const { PORTICO_CONFIG: usual } = terminal.env;
  const named = given ?? (usual === "" ? undefined : usual);
  if (named !== undefined) return toPath(named, terminal);
  const file = toPath("portico.json", terminal);
  return isThere(file) ? file : undefined;
}

/** A link that leads nowhere, or what may not be looked at, is no request to run without a file: reading it will fail. */
function isThere(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

function readSource(file: string | undefined, terminal: Terminal): Source {
  if (file === undefined) return { folder: terminal.folder, generatedToken: createToken() };
  try {
    const mode = process.platform === "win32" ? undefined : statSync(file).mode;
    return { file, text: readFileSync(file, "utf8"), mode };
  } catch (thrown) {
    const code = codeOf(thrown);
    const remedy = remedies.get(code) ?? "let the gateway's user read it";
    const message = `the config file cannot be read (${code}); ${remedy}, or name another with --config`;
    throw new ConfigError([{ path: file, message }]);
  }
}

const remedies: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "write one with `portico init`"],
  ["EISDIR", "it is a folder: name the file in it"],
]);

/** A path on the command line is relative to the current folder, not the file's; the schema refuses other ports. */
function toOverrides({ bind, port }: SettingsOptions, terminal: Terminal): object {
  const absolute = (path: string): string => toPath(path, terminal);
  return {
    ...(bind !== undefined && { bind: bind.replace(/(?<=^unix:).+/s, absolute) }),
    ...(port !== undefined && { port: /^\d+$/.test(port) ? Number(port) : port }),
  };
}
