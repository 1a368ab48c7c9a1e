/** `portico check`, `schema` and `doctor`: what the config file says, what it may say, and what it does not work with. */
import { existsSync } from "node:fs";
import { type Config, hasListener } from "../config/config.ts";
import type { Form } from "../config/form.ts";
import { toFileForm } from "../config/keys.ts";
import { ConfigError } from "../config/problem.ts";
import { hideUser } from "../config/read.ts";
import type { Lane } from "../core/route/lane.ts";
import { openLanes } from "../lanes.ts";
import { examineServer, fileOf, openCold } from "../store/open.ts";
import type { Command } from "./command.ts";
import { findGateway, toAddress } from "./gateway.ts";
import { complain, messageOf, print, toLine } from "./output.ts";
import { configOption, listProblems, readSettings, type Settings } from "./settings.ts";

export const check: Command = {
  summary: "Validate the configuration, and print it with secrets masked.",
  usage: "check [--config FILE]",
  options: configOption,
  notes: [
    "Prints the effective configuration as JSON on standard output, warnings and problems on standard error.",
    "A value from a reference is shown as written: ${NAME}, or the name of its file.",
    "Makes every adapter on trial: a missing file or package is a problem too.",
    "Exits with 0 if the gateway would start with it, else with 1.",
  ],
  async run({ options }) {
    const { config, shown, warnings, reason } = await readSettings(options);
    await closeAll(await openLanes(config));
    print(JSON.stringify(shown, undefined, 2));
    if (warnings.length > 0) complain(listProblems(warnings, "warning: "));
    complain(`adapter ${config.defaultAdapter}: ${reason}`);
    complain(
      config.file === undefined ? "No config file: this is how it runs without one." : `${config.file} is valid.`,
    );
    return 0;
  },
};

export const schema: Command = {
  summary: "Print the JSON Schema of the config file, for editors.",
  usage: "schema",
  options: {},
  notes: ['Save it, and name it in the file: "$schema": "./portico.schema.json".'],
  async run() {
    const ours: ReadonlySet<string> = new Set(["isSecret", "pathBehind"] satisfies (keyof Form)[]);
    const all = { $schema: "https://json-schema.org/draft/2020-12/schema", ...toFileForm() };
    print(JSON.stringify(all, (key, value: unknown) => (ours.has(key) ? undefined : value), 2));
    return 0;
  },
};

export const doctor: Command = {
  summary: "Diagnose problems, and say how to fix them.",
  usage: "doctor [--config FILE]",
  options: configOption,
  notes: [
    "Checks the configuration, the store, whether a gateway runs, and each adapter's server.",
    "Changes nothing, and spends no turn: a server is asked for its list of models, with the adapter's own key.",
    "Exits with 1 if there is a problem, else with 0.",
  ],
  async run({ options }) {
    const findings = await examine(options).catch((thrown: unknown): readonly Finding[] => {
      if (!(thrown instanceof ConfigError)) throw thrown;
      return thrown.problems.map(({ path, message }) => ["problem", path, message]);
    });
    for (const [level, about, text] of findings) print(`${level.padEnd(7)}  ${toLine(`${about}: ${text}`)}`);
    return findings.some(([level]) => level === "problem") ? 1 : 0;
  },
};

type Finding = readonly [level: "ok" | "warning" | "problem", about: string, text: string];

async function examine(options: Readonly<Record<string, string | undefined>>): Promise<readonly Finding[]> {
  const { config, warnings, reason }: Settings = await readSettings(options);
  const lanes = await openLanes(config);
  const findings: readonly Finding[] = [
    ["ok", "configuration", config.file ?? "no file, so both endpoints are on"],
    ...warnings.map(({ path, message }): Finding => ["warning", path, message]),
    ...(await judgeStore(config.store)),
    await judge("gateway", () => judgeGateway(config)),
    ["ok", "default adapter", `${config.defaultAdapter}: ${reason}`],
    // In parallel: only the slowest one counts.
    ...(await Promise.all(lanes.map((lane) => judge(`adapter ${lane.name}`, () => judgeAdapter(lane))))),
  ];
  await closeAll(lanes);
  return findings;
}

async function closeAll(lanes: readonly Lane[]): Promise<void> {
  for (const { adapter } of lanes) await adapter.close?.();
}

/** What is thrown is the problem. */
async function judge(about: string, look: () => Promise<string>): Promise<Finding> {
  try {
    return ["ok", about, await look()];
  } catch (thrown) {
    return ["problem", about, messageOf(thrown)];
  }
}

async function judgeStore(address: string): Promise<readonly Finding[]> {
  const file = fileOf(address);
  if (file !== undefined) return [await judge("store", () => judgeFile(file, address))];
  const name = hideUser(address);
  try {
    const traits = await examineServer(address);
    return traits.map(([isWell, text]) => [isWell ? "ok" : "warning", "store", `${name}: ${text}`]);
  } catch (thrown) {
    return [["problem", "store", `${name}: ${messageOf(thrown)}`]];
  }
}

async function judgeFile(file: string, address: string): Promise<string> {
  if (!existsSync(file)) return `${file} is made at the first start`;
  const store = await openCold(address);
  await store.listSessions({ limit: 1 }).finally(() => store.close());
  return file;
}

async function judgeGateway(config: Config): Promise<string> {
  const { http } = config;
  if (!hasListener(http)) return "no endpoint is on, so nothing listens";
  const found = await findGateway(config);
  return found === undefined ? `no gateway answers at ${toAddress(http)}` : `a gateway answers at ${found}`;
}

/** To list models takes what a turn takes (name, connection, proxy, key), and costs nothing. */
async function judgeAdapter({ adapter }: Lane): Promise<string> {
  const models = await adapter.models?.();
  return models === undefined ? "ready" : `answers, models: ${models.length}`;
}
