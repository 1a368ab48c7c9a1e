/** `portico token …`: makes tokens and digests, and replaces a generated one; never changes the config file. */
import { hash } from "node:crypto";
import { text } from "node:stream/consumers";
import { isToken } from "../config/judges.ts";
import { keepToken, makeToken } from "../config/token.ts";
import { type Command, CommandError, type Group, UsageError } from "./command.ts";
import { complain, print } from "./output.ts";
import { configOption, readSettings } from "./settings.ts";

const make: Command = {
  summary: "Make a token, with its digest and its config line.",
  usage: "token make [--name NAME]",
  options: { name: { value: "NAME", summary: "The owner of what it creates. Default: my-app." } },
  notes: [
    "The token goes to the client and is stored nowhere else; the line goes into gateway.http.tokens, and holds only the digest.",
  ],
  async run({ options: { name = "my-app" } }) {
    if (name === "default") throw new UsageError("'default' owns the tokens without a name; choose another name.");
    const token = makeToken();
    const sha256 = hash("sha256", token);
    print(`token   ${token}\nsha256  ${sha256}\nconfig  ${JSON.stringify({ name, sha256 })}`);
    return 0;
  },
};

const hashToken: Command = {
  summary: "Print the digest of a token from standard input.",
  usage: "token hash",
  options: {},
  // Refused below, with a message that does not repeat the token.
  maxPositionals: Number.POSITIVE_INFINITY,
  notes: ["The digest is what `sha256` holds in gateway.http.tokens."],
  async run({ positionals }) {
    if (positionals.length > 0) {
      const why = "it would end up in the shell's history, and other users could see it";
      throw new UsageError(`A token is never an argument: ${why}. Give it on standard input.`);
    }
    if (process.stdin.isTTY) complain("Enter the token, then Ctrl-D:");
    const token = (await text(process.stdin)).trim();
    if (isToken(token) !== undefined) {
      throw new CommandError("Standard input has no token: a token is one line of visible ASCII characters.");
    }
    print(hash("sha256", token));
    return 0;
  },
};

const leftAlone =
  "Nothing was changed: the tokens are in the config file, which is yours to change. Make one with `portico token make`, put it in the old one's place, and send SIGHUP to the service, or restart it.";

const rotate: Command = {
  summary: "Replace a generated token.",
  usage: "token rotate [--operator] [--config FILE]",
  options: { operator: { summary: "The operator's token, instead of the clients'." }, ...configOption },
  notes: [
    "Without a config file, the tokens are in the data folder, and are replaced there.",
    "A config file is never changed: standard error says what to change in it, and the command exits with 1.",
  ],
  async run({ options }) {
    const { config, generated } = await readSettings(options);
    if (generated === undefined) throw new CommandError(`${leftAlone} (${config.file})`);
    const { file, isNew } = options["operator"] !== undefined ? generated.operator : generated.client;
    if (isNew) throw new CommandError(`There is no ${file} yet: the first \`portico start\` makes it.`);
    const token = makeToken();
    keepToken(file, token);
    print(`${token}  (shown only now; kept in ${file})`);
    print("A running gateway has it when restarted; a service also on SIGHUP. Sessions stay: they are the owner's.");
    return 0;
  },
};

export const token: Group = {
  summary: "Make, hash or rotate a token.",
  commands: { make, hash: hashToken, rotate },
};
