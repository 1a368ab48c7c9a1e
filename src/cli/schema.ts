/** `portico schema`: prints the JSON Schema of the config file. */
import { adapterOptions } from "../adapters/index.ts";
import { toJsonSchema } from "../config/editor.ts";
import type { Command } from "./command.ts";

export const schema: Command = {
  summary: "Print the JSON Schema of the config file, for editors.",
  usage: "schema",
  options: {},
  notes: ['Save it, and name it in the file: "$schema": "./portico.schema.json".'],
  async run(_given, terminal) {
    terminal.print(JSON.stringify(toJsonSchema(adapterOptions), undefined, 2));
    return 0;
  },
};
