/** `portico check`: validates the configuration, and prints its full form. */
import { maskSecrets } from "../config/mask.ts";
import type { Command } from "./command.ts";
import { configOption, listProblems, readSettings } from "./settings.ts";

export const check: Command = {
  summary: "Validate the configuration, and print it with secrets masked.",
  usage: "check [--config FILE]",
  options: configOption,
  notes: [
    "Prints the effective configuration as JSON on standard output, warnings and problems on standard error.",
    "A value from a reference is shown as written: ${NAME}, or the name of its file.",
    "Creates every adapter on trial: a missing program, file or package is a problem too.",
    "Exits with 0 if the gateway would start with it, else with 1.",
  ],
  async run({ options }, terminal, runtime) {
    const { config, effective, shown, warnings, reason } = await readSettings(options, terminal);
    await runtime.tryAdapters(config);
    terminal.print(JSON.stringify(maskSecrets(effective, shown), undefined, 2));
    if (warnings.length > 0) terminal.complain(listProblems(warnings, "warning: "));
    terminal.complain(`adapter ${config.defaultAdapter}: ${reason}`);
    terminal.complain(
      config.file === undefined ? "No config file: these are the settings without one." : `${config.file} is valid.`,
    );
    return 0;
  },
};
