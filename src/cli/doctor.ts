/** `portico doctor`: what is well, what is not, and what to do; it changes nothing, and shows no secret. */
import { once } from "node:events";
import { accessSync, constants, existsSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { type Config, hasListener } from "../config/config.ts";
import { ConfigError } from "../config/problem.ts";
import type { Command } from "./command.ts";
import { findGateway } from "./gateway.ts";
import { makeAdapter, messageOf, openCold } from "./house.ts";
import { print, toLine } from "./output.ts";
import { configOption, readSettings, type Settings } from "./settings.ts";
import { explainFailure } from "./start.ts";

export const doctor: Command = {
  summary: "Diagnose problems, and say how to fix them.",
  usage: "doctor [--config FILE]",
  options: configOption,
  notes: [
    "Checks the configuration, the store, the port, and each adapter's server.",
    "Changes nothing, and spends no turn: a server is asked for its list of models, with the adapter's own key.",
    "Exits with 1 if there is a problem, else with 0.",
  ],
  async run({ options }) {
    const findings = await examine(options);
    for (const [level, about, text] of findings) print(`${level.padEnd(7)}  ${toLine(`${about}: ${text}`)}`);
    return findings.some(([level]) => level === "problem") ? 1 : 0;
  },
};

type Finding = readonly [level: "ok" | "warning" | "problem", about: string, text: string];

async function examine(options: Readonly<Record<string, string | undefined>>): Promise<readonly Finding[]> {
  let settings: Settings;
  try {
    settings = await readSettings(options);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return thrown.problems.map(({ path, message }) => ["problem", path, message]);
  }
  const { config, warnings, reason } = settings;
  return [
    ["ok", "configuration", config.file ?? "no file, so both endpoints are on"],
    ...warnings.map(({ path, message }): Finding => ["warning", path, message]),
    await judge("store", () => judgeStore(config.storeFile)),
    await judge("port", () => judgePort(config)),
    ["ok", "default adapter", `${config.defaultAdapter}: ${reason}`],
    // In parallel: only the slowest one counts.
    ...(await Promise.all(
      Object.keys(config.adapters).map((name) => judge(`adapter ${name}`, () => judgeAdapter(config, name))),
    )),
  ];
}

/** What is thrown is the problem. */
async function judge(about: string, look: () => Promise<string>): Promise<Finding> {
  try {
    return ["ok", about, await look()];
  } catch (thrown) {
    return ["problem", about, messageOf(thrown)];
  }
}

/** One that is missing is judged by where it would be made. */
async function judgeStore(file: string): Promise<string> {
  if (!existsSync(file)) {
    let there = dirname(file);
    while (!existsSync(there)) there = dirname(there);
    accessSync(there, constants.W_OK | constants.X_OK);
    return `${file} is made at the first start`;
  }
  const store = await openCold(file);
  try {
    await store.listSessions({ limit: 1 });
    return file;
  } finally {
    store.close();
  }
}

/** Listens for a moment, the only way to find out; a port that our own gateway has is well. */
async function judgePort(config: Config): Promise<string> {
  const { http } = config;
  if (!hasListener(http)) return "no endpoint is on, so nothing listens";
  const found = await findGateway(config);
  if (found !== undefined) return `a gateway answers at ${found}`;
  if (http.bind.startsWith("unix:")) return `nobody answers at ${http.bind}`;
  const server = createServer();
  try {
    await once(server.listen({ host: http.bind, port: http.port }), "listening");
    return http.port === 0 ? "any free one" : `${http.port} of ${http.bind} is free`;
  } catch (thrown) {
    throw new Error(explainFailure(thrown, http), { cause: thrown });
  } finally {
    server.close();
  }
}

/** To list models takes what a turn takes (name, connection, proxy, key), and costs nothing. */
async function judgeAdapter(config: Config, name: string): Promise<string> {
  const adapter = await makeAdapter(config, name);
  try {
    const models = await adapter.models?.();
    return models === undefined ? "ready" : `answers, models: ${models.length}`;
  } finally {
    await adapter.close?.();
  }
}
