/** Finds the config file, reads it, and loads it. */
import { lstatSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { ParseError } from "jsonc-parser";
import { type Loaded, loadConfig } from "../config/load.ts";
import { codeOf, ConfigError, problem, type Problem } from "../config/problem.ts";
import { findOrMakeTokens, type GeneratedTokens } from "../config/token.ts";
import { probe } from "./gateway.ts";

export const configOption = {
  config: { value: "FILE", summary: "The config file. Default: $PORTICO_CONFIG, else ./portico.json." },
};

/** The options that change the settings. */
export interface SettingsOptions {
  readonly config?: string | undefined;
  readonly bind?: string | undefined;
  readonly port?: string | undefined;
}

export interface Settings extends Loaded {
  /** Those of a run without a file. */
  readonly generated: GeneratedTokens | undefined;
}

/** Throws a ConfigError with everything that is wrong. */
export async function readSettings(options: SettingsOptions): Promise<Settings> {
  const { env } = process;
  const around = { env, probe, overrides: toOverrides(options) };
  const file = findFile(options.config ?? env["PORTICO_CONFIG"]);
  if (file !== undefined) {
    const { settings, mode } = await readFile(file);
    return { ...(await loadConfig(settings, { ...around, folder: dirname(file), file, mode })), generated: undefined };
  }
  const folder = process.cwd();
  const generated = findOrMakeTokens(join(folder, ".portico"));
  // Nobody said otherwise, and only this machine reaches it.
  const endpoints = { compat_chat: true, compat_responses: true };
  const http = { auth_token: generated.client.token, endpoints, console: true };
  const gateway = { auth: { token: generated.operator.token }, http };
  return { ...(await loadConfig({ gateway }, { ...around, folder })), generated };
}

/** All problems of a configuration. */
export function describeProblems({ problems, file }: ConfigError): string {
  const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
  const where = file === undefined ? "" : ` in ${file}`;
  return `The configuration${where} has ${count}:\n${listProblems(problems, "  ")}`;
}

/** Problems or warnings, a line each. */
export function listProblems(problems: readonly Problem[], start: string): string {
  return problems.map(({ path, message }) => `${start}${path}: ${message}`).join("\n");
}

/** A link that leads nowhere is no request to run without a file: reading it will fail. */
function findFile(named: string | undefined): string | undefined {
  if (named !== undefined && named !== "") return resolve(named);
  const usual = resolve("portico.json");
  return lstatSync(usual, { throwIfNoEntry: false }) === undefined ? undefined : usual;
}

async function readFile(file: string): Promise<{ readonly settings: unknown; readonly mode: number | undefined }> {
  let text: string;
  let mode: number | undefined;
  try {
    mode = process.platform === "win32" ? undefined : statSync(file).mode;
    text = readFileSync(file, "utf8").replace(/^\uFEFF/, "");
  } catch (thrown) {
    const message = `the config file cannot be read (${codeOf(thrown)}); name another with --config, or write one with \`portico init\``;
    throw new ConfigError([{ path: file, message }]);
  }
  return { settings: await parse(text, file), mode };
}

/** JSON that may have comments and trailing commas. It is never quoted: it may contain secrets. */
async function parse(text: string, file: string): Promise<unknown> {
  // Only a file needs the package, which takes a tenth of a start.
  const { default: jsonc } = await import("jsonc-parser");
  const errors: ParseError[] = [];
  const value: unknown = jsonc.parse(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first === undefined) return value;
  const before = text.slice(0, first.offset).split("\n");
  const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
  throw new ConfigError([problem([], `not valid JSON: ${jsonc.printParseErrorCode(first.error)} at ${place}`)], file);
}

/** A path on the command line is relative to the current folder, not to the file's. */
function toOverrides({ bind, port }: SettingsOptions): Readonly<Record<string, unknown>> {
  return {
    ...(bind !== undefined && { bind: bind.replace(/(?<=^unix:).+/s, (path) => resolve(path)) }),
    ...(port !== undefined && { port: /^\d+$/.test(port) ? Number(port) : port }),
  };
}
