/** `portico doctor`: diagnoses problems, and says how to fix them. */
import type { Loaded } from "../config/load.ts";
import { ConfigError } from "../config/problem.ts";
import type { Command } from "./command.ts";
import { type Finding, formatFinding, ok, problemWith, warning } from "./doctor/finding.ts";
import { configOption, readSettings } from "./settings.ts";

export const doctor: Command = {
  summary: "Diagnose problems, and say how to fix them.",
  usage: "doctor [--offline] [--config FILE]",
  options: {
    offline: { summary: "Do not contact the adapters' servers." },
    ...configOption,
  },
  notes: [
    "Checks the configuration, the folders, the store, the port, a running gateway and the adapters.",
    "Changes no stored data, spends no turn, prints no secret, and takes a few seconds at most. A gateway may run meanwhile.",
    "An adapter's server is asked for its list of models, with the adapter's own key.",
    "Exits with 1 if there is a problem, else with 0.",
  ],
  async run({ options, flags }, terminal, runtime) {
    const findings = await examine(readSettings(options, terminal, runtime), flags.has("offline"));
    for (const finding of findings) terminal.print(formatFinding(finding));
    return findings.some(({ level }) => level === "problem") ? 1 : 0;
  },
};

async function examine(loading: Promise<Loaded>, isOffline: boolean): Promise<readonly Finding[]> {
  // A Node that is too old is refused before any of this is loaded.
  const node = ok("node", process.versions.node);
  let loaded;
  try {
    loaded = await loading;
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return [node, ...thrown.problems.map(({ path, message }) => problemWith(path, message))];
  }
  const { config, warnings, reason } = loaded;
  const { judgeAdapters } = await import("./doctor/adapters.ts");
  const { judgeFolders } = await import("./doctor/folders.ts");
  const { judgePort } = await import("./doctor/port.ts");
  const { judgeStore } = await import("./doctor/store.ts");
  const [port, adapters] = await Promise.all([judgePort(config), judgeAdapters(config, isOffline)]);
  return [
    node,
    ok("configuration", config.file === undefined ? "no file, so both endpoints are on" : `${config.file} is valid`),
    ...warnings.map(({ path, message }) => warning(path, message)),
    ...judgeFolders(config),
    // It blocks everything else while it reads, so it runs when nothing else waits.
    await judgeStore(config.sessions.store),
    port,
    ok("default adapter", `${config.defaultAdapter}: ${reason}`),
    ...adapters,
  ];
}
