/** `portico doctor`: diagnoses problems, and says how to fix them. */
import type { Loaded } from "../config/load.ts";
import { ConfigError } from "../config/problem.ts";
import type { Command } from "./command.ts";
import { type Finding, formatFinding, ok, problem } from "./doctor/finding.ts";
import { configOption, readSettings } from "./settings.ts";

export const doctor: Command = {
  summary: "Diagnose problems, and say how to fix them.",
  usage: "doctor [--offline] [--config FILE] [--bind ADDRESS] [--port NUMBER]",
  options: {
    offline: { summary: "Do not contact the adapters' servers." },
    ...configOption,
    bind: { value: "ADDRESS", summary: "As given to `portico start`, instead of gateway.http.bind." },
    port: { value: "NUMBER", summary: "As given to `portico start`, instead of gateway.http.port." },
  },
  notes: [
    "Checks the configuration, the folders, the store, the port, a running gateway and the adapters.",
    "Changes no stored data, spends no turn, prints no secret, and takes a few seconds at most. A gateway may run meanwhile.",
    "An adapter's server is asked for its list of models, with the adapter's own key.",
    "Exits with 1 if there is a problem, else with 0.",
  ],
  async run({ options, flags }, terminal) {
    const findings = await examine(readSettings(options, terminal), flags.has("offline"));
    for (const [about, finding] of findings) terminal.print(formatFinding(about, finding));
    return findings.some(([, { level }]) => level === "problem") ? 1 : 0;
  },
};

type Examined = readonly [about: string, finding: Finding];

async function examine(loading: Promise<Loaded>, isOffline: boolean): Promise<readonly Examined[]> {
  // A Node that is too old is refused before any of this is loaded.
  const node: Examined = ["node", ok(process.versions.node)];
  let loaded;
  try {
    loaded = await loading;
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return [node, ...thrown.problems.map(({ path, message }): Examined => [path, problem(message)])];
  }
  const { config, warnings, reason } = loaded;
  const { judgeAdapter } = await import("./doctor/adapters.ts");
  const { judgeFolders, judgeToken } = await import("./doctor/folders.ts");
  const { judgePort } = await import("./doctor/port.ts");
  const { judgeStore } = await import("./doctor/store.ts");
  // In parallel: only the slowest one counts.
  const adapters = Object.entries(config.adapters).map(async ([name, chosen]): Promise<Examined> => [
    `adapter ${name}`,
    await judgeAdapter(chosen, config.file, isOffline),
  ]);
  const [port, ...asked] = await Promise.all([judgePort(config), ...adapters]);
  const found = config.file === undefined ? "no file, so both endpoints are on" : `${config.file} is valid`;
  return [
    node,
    ["configuration", ok(found)],
    ...warnings.map(({ path, message }): Examined => [path, { level: "warning", text: message }]),
    ...judgeFolders(config).map((finding): Examined => ["data folder", finding]),
    ...(config.file === undefined ? [["token", judgeToken(config)] as const] : []),
    // It blocks everything else while it reads, so it runs when nothing else waits.
    ["store", await judgeStore(config.sessions.store)],
    ["port", port],
    ["default adapter", ok(`${config.defaultAdapter}: ${reason}`)],
    ...asked,
  ];
}
