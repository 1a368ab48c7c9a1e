/** `portico check` and `portico schema`: what the config file says, and what it may say. */
import { adapterKinds } from "../config/adapters.ts";
import type { Form } from "../config/form.ts";
import { toFileForm } from "../config/keys.ts";
import type { Command } from "./command.ts";
import { tryAdapters } from "./house.ts";
import { complain, print } from "./output.ts";
import { configOption, listProblems, readSettings } from "./settings.ts";

export const check: Command = {
  summary: "Validate the configuration, and print it with secrets masked.",
  usage: "check [--config FILE]",
  options: configOption,
  notes: [
    "Prints the effective configuration as JSON on standard output, warnings and problems on standard error.",
    "A value from a reference is shown as written: ${NAME}, or the name of its file.",
    "Makes every adapter on trial: a missing program, file or package is a problem too.",
    "Exits with 0 if the gateway would start with it, else with 1.",
  ],
  async run({ options }) {
    const { config, shown, warnings, reason } = await readSettings(options);
    await tryAdapters(config);
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
    const all = { $schema: "https://json-schema.org/draft/2020-12/schema", ...toFileForm(adapterKinds) };
    print(JSON.stringify(all, (key, value: unknown) => (ours.has(key) ? undefined : value), 2));
    return 0;
  },
};
