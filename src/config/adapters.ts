/** The keys of adapters: those of every kind, and each kind's own. */
import {
  choice,
  flag,
  type Form,
  integer,
  type Keys,
  list,
  names,
  path,
  section,
  secret,
  someOf,
  text,
} from "./form.ts";
import { isBaseUrl, isFilled, isHeader, isHeaderName, isNetwork, matching } from "./judges.ts";

const isProxyUrl = matching(/^(https?|socks5?):\/\/./, 'a URL like "http://proxy.example.com:3128"');

export const commonKeys = {
  model: text(isFilled, "The model to ask, whatever name a caller sends."),
  models: names(text(isFilled, "The adapter's own name."), "Names that callers may send, each with the adapter's own."),
  context_window: integer(undefined, "Tokens the model takes; longer remembered conversations lose their middle."),
  fallback: list(text(undefined, "An adapter's name."), "Who is asked when this one cannot answer, in this order."),
  retries: integer(2, "How often it is asked again when it fails before its first word.", 0, 10),
  first_byte_timeout_ms: integer(120_000, "The longest wait for the first byte of a streamed answer."),
  idle_timeout_ms: integer(120_000, "The longest silence within a streamed answer."),
  total_timeout_ms: integer(600_000, "The longest that a whole answer may take; streams have no such limit."),
};

const openai = {
  base_url: text(
    isBaseUrl,
    "The server, up to the part before /chat/completions: http://…, https://…, unix:/path.",
    "https://api.openai.com/v1",
  ),
  api_key: secret(isHeader, "Sent as `Authorization: Bearer`."),
  headers: names(secret(isHeader, "A header's value."), "Further headers, which count more than ours.", isHeaderName),
  wire: choice(["chat", "responses"], "What the server speaks: chat completions, or responses.", "chat"),
  proxy: text(isProxyUrl, "A proxy's URL; absent: as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say."),
  send_reasoning: flag(false, "On the chat wire, send back the reasoning of a tool loop as `reasoning_content`."),
  custom_tools: choice(["custom", "function"], "How the chat wire offers tools that take free text.", "custom"),
  max_tokens_field: choice(["max_completion_tokens", "max_tokens"], "The chat wire's field; absent: the caller's own."),
  developer_role: choice(["developer", "system"], "The chat wire's role of developer messages; absent: the caller's."),
};

const options = { isSecret: true, description: "An option." } as const;

const aiSdk = {
  package: text(isFilled, "The provider's npm package, installed beside the config file."),
  provider: text(isFilled, "Its export that makes the provider; absent: its only `create…` function."),
  options: names(options, "What that function is given: apiKey, baseURL, headers, and whatever else it takes."),
  provider_options: names({ description: "Its options." }, "Options of every request, by the provider's name."),
  fetch_media: section("Images and files that callers give by URL and the model does not take so.", {
    enabled: flag(true, "Fetches them, from the public internet alone."),
    max_bytes: integer(20 * 1024 * 1024, "The largest one, in bytes; also of data: URLs."),
    timeout_ms: integer(10_000, "The longest that fetching one may take."),
    allow_private: list(text(isNetwork, "An address or a network."), "What else may be reached."),
  }),
};

const usualVariables = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

const command = {
  argv: someOf(
    text(undefined, "A word."),
    "The program and its arguments; {model} and {prompt} are the turn's; no shell.",
  ),
  cwd: path(isFilled, "Where it runs.", "."),
  env: list(text(isFilled, "A variable's name."), "The gateway's own variables that it may see.", usualVariables),
  set_env: names(secret(undefined, "A variable's value."), "Further variables, with their values."),
  input: choice(["json", "text", "none"], "What it reads: the turn, the last user message, or nothing.", "json"),
  output: choice(
    ["auto", "text", "jsonl"],
    "What it writes: text, deltas as JSON Lines, or what it begins with.",
    "auto",
  ),
};

const moduleKeys = {
  path: path(isFilled, "The JavaScript or TypeScript file whose default export makes the adapter."),
  options: names(options, "What that function is given."),
};

const echo = {
  delay_ms: integer(0, "Pause before each word; 0 says everything at once.", 0, 60_000),
};

/** Each kind's own keys. */
export const adapterKinds = { openai, "ai-sdk": aiSdk, command, module: moduleKeys, echo };

const requiredKeys: ReadonlySet<string> = new Set(["package", "argv", "path"]);

/** The form of an adapter of any of these kinds. */
export function toAdapterForm(kinds: Readonly<Record<string, Keys>>): Form {
  const anyOf = Object.entries(kinds).map(([kind, own]) => {
    const required = ["type", ...Object.keys(own).filter((key) => requiredKeys.has(key))];
    return section("What answers.", { type: choice([kind], "The kind of adapter."), ...commonKeys, ...own }, required);
  });
  return { description: "What answers.", anyOf };
}
