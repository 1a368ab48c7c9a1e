/** `portico token …`: makes tokens and digests, and replaces the generated one; never changes the config file. */
import { hash } from "node:crypto";
import { text } from "node:stream/consumers";
import { isToken } from "../config/headers.ts";
import { createToken, findToken, storeToken } from "../config/token.ts";
import { type Command, CommandError, type Group, UsageError } from "./command.ts";
import { configOption, readSettings } from "./settings.ts";

const make: Command = {
  summary: "Make a token, with its digest and its config line.",
  usage: "token make [--name NAME]",
  options: { name: { value: "NAME", summary: "The owner of what it creates. Default: my-app." } },
  notes: [
    "The token goes to the client and is stored nowhere else; the line goes into gateway.http.tokens, and holds only the digest.",
  ],
  async run({ options }, terminal) {
    const name = options["name"] ?? "my-app";
    if (name === "default")
      throw new UsageError("'default' is the owner of the tokens without a name; choose another.");
    const token = createToken();
    const sha256 = digestOf(token);
    terminal.print(`token   ${token}\nsha256  ${sha256}\nconfig  ${JSON.stringify({ name, sha256 })}`);
    return 0;
  },
};

const hashToken: Command = {
  summary: "Print the digest of a token from standard input.",
  usage: "token hash",
  options: {},
  // Refused below, with a message that does not repeat the token.
  maxPositionals: Number.POSITIVE_INFINITY,
  notes: [
    "The digest is what `sha256` holds in gateway.http.tokens.",
    "A token is never an argument: it would end up in the shell history, and other users could see it.",
  ],
  async run({ positionals }, terminal) {
    if (positionals.length > 0) {
      throw new UsageError(
        "A token is never an argument: it would end up in the shell history. Give it on standard input.",
      );
    }
    if (terminal.isInteractive) terminal.complain("Enter the token, then Ctrl-D:");
    const token = (await text(terminal.input)).trim();
    if (!isToken(token)) {
      throw new CommandError("Standard input contains no token: a token is one line of visible ASCII characters.");
    }
    terminal.print(digestOf(token));
    return 0;
  },
};

const rotate: Command = {
  summary: "Replace the generated token.",
  usage: "token rotate [--config FILE]",
  options: configOption,
  notes: [
    "Without a config file, the token is in the data folder, and is replaced there.",
    "A config file is never changed: standard error says what to change in it, and the command exits with 1.",
  ],
  async run({ options }, terminal) {
    const { config } = await readSettings(options, terminal);
    if (config.file !== undefined) throw new CommandError(explainRotation(config.file));
    const old = findToken(config.dataDir);
    if (old === undefined) {
      throw new CommandError(`There is no token in ${config.dataDir} yet: the first \`portico start\` generates one.`);
    }
    const token = createToken();
    storeToken(config.dataDir, token);
    terminal.print(`${token}  (shown only now; stored in ${old.file})
A running gateway switches to it when restarted; a service also on SIGHUP.
Sessions stay: they belong to the owner, not to the token.`);
    return 0;
  },
};

export const token: Group = {
  summary: "Make, hash or rotate a token.",
  commands: { make, hash: hashToken, rotate },
};

function digestOf(token: string): string {
  return hash("sha256", token, "hex");
}

/** Every name is an owner, so a second token with the same name has the same sessions. */
function explainRotation(file: string): string {
  return `Nothing was changed. The tokens are in ${file}, which is yours to change:
  1. Make a token: portico token make --name NAME
  2. gateway.http.tokens: add its line beside the old one, with the same name, and give the old one an expires_at. Both work
     until then, and both have the sessions of that name.
     gateway.http.auth_token, gateway.auth.token: replace the old token with it; the old one no longer works then.
     Sessions stay here too.
  3. Validate: portico check. Then send SIGHUP to the service, or restart it.
  4. Give the token to the client, and later remove the old line.`;
}
