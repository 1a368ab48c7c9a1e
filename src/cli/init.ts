/** `portico init`: writes a commented config file with a fresh token. */
import { existsSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { makeToken } from "../config/token.ts";
import { type Command, CommandError, nameOf } from "./command.ts";
import { print } from "./output.ts";

export const init: Command = {
  summary: "Write a commented config file with a fresh token.",
  usage: "init [FILE]",
  options: {},
  maxPositionals: 1,
  notes: ["FILE is ./portico.json when absent. An existing file is never overwritten."],
  async run({ positionals: [name] }) {
    const file = resolve(name ?? "portico.json");
    if (existsSync(file)) throw new CommandError(`${file} exists and was left as it is; name another file.`);
    writeFileSync(file, composeFile(makeToken()), { mode: 0o600, flag: "wx" });
    const start = nameOf("start") + (name === undefined ? "" : ` --config ${name}`);
    print(`Wrote ${file}, readable only by you, with a fresh token in it.\nStart it: ${start}`);
    return 0;
  },
};

function composeFile(token: string): string {
  return `// Portico's configuration: JSON in which comments and trailing commas are allowed.
// Any string may contain \${ENV_NAME}; a secret may also be {"file": "path"}. Paths are relative to this file's folder.
// List every key: portico schema. Validate this file: portico check.
{
  "gateway": {
    "http": {
      // Any address but loopback lets other machines in: put a proxy with TLS in front.
      "bind": "127.0.0.1",
      "port": 8600,

      // Clients send it as "Authorization: Bearer <token>".
      "auth_token": "${token}",

      // Anyone with the token may send requests to these.
      "endpoints": {
        "compat_chat": true, // POST /v1/chat/completions
        "compat_responses": true, // POST /v1/responses
      },

      // A page for the browser at /console.
      // "console": true,
    },

    // The general token, the operator's: opens everything, also /metrics, the stored sessions and the whole console.
    // "auth": { "token": "\${PORTICO_OPERATOR_TOKEN}" },

    // What answers. Without it: OpenAI or Anthropic, if the environment has a key, else a local Ollama, else an echo.
    // "adapters": {
    //   "main": { "type": "openai", "base_url": "https://api.openai.com/v1", "api_key": "\${OPENAI_API_KEY}" },
    // },
    // "default_adapter": "main",
  },
}
`;
}
