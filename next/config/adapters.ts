/** The keys of adapters: those of every kind, and each kind's own. */
import { choice, flag, integer, type Keys, list, names, optionalInteger, section, text } from "./form.ts";
import { isBaseUrl, isFilled, isHeader, isHeaderName, isNetwork, matching } from "./judges.ts";

const filled = { judge: isFilled } as const;
const path = { pathBehind: "", judge: isFilled } as const;
const header = { isSecret: true, judge: isHeader } as const;
const isProxyUrl = matching(/^(https?|socks5?):\/\/./, 'a URL like "http://proxy.example.com:3128"');

export const commonKeys = {
  model: text("The model to ask, whatever name a caller sends.", filled),
  models: names(text("The adapter's own name.", filled), "Names that callers may send, each with the adapter's own."),
  context_window: optionalInteger("Tokens the model takes; longer remembered conversations lose their middle."),
  fallback: list(text("An adapter's name."), "Who is asked when this one cannot answer, in this order."),
  retries: integer(2, "How often it is asked again when it fails before its first word.", 0, 10),
  first_byte_timeout_ms: integer(120_000, "The longest wait for the first byte of a streamed answer."),
  idle_timeout_ms: integer(120_000, "The longest silence within a streamed answer."),
  total_timeout_ms: integer(600_000, "The longest that a whole answer may take; streams have no such limit."),
} as const;

const openai = {
  base_url: text("The server, up to the part before /chat/completions: http://…, https://…, unix:/path.", {
    default: "https://api.openai.com/v1",
    hasPassword: true,
    judge: isBaseUrl,
  }),
  api_key: text("Sent as `Authorization: Bearer`.", header),
  headers: names(
    text("A header's value.", header),
    "Further headers, which count more than Portico's own.",
    isHeaderName,
  ),
  wire: choice(["chat", "responses"], "What the server speaks: chat completions, or responses.", { default: "chat" }),
  proxy: text("A proxy's URL; absent: what HTTPS_PROXY, HTTP_PROXY and NO_PROXY say.", {
    hasPassword: true,
    judge: isProxyUrl,
  }),
  send_reasoning: flag(false, "On the chat wire, send back the reasoning of a tool loop as `reasoning_content`."),
  custom_tools: choice(["custom", "function"], "How the chat wire offers tools that take free text.", {
    default: "custom",
  }),
  max_tokens_field: choice(["max_completion_tokens", "max_tokens"], "The chat wire's field; absent: the caller's own."),
  developer_role: choice(["developer", "system"], "The chat wire's role of developer messages; absent: the caller's."),
} as const;

const aiSdk = {
  package: text("The provider's npm package, installed beside the config file.", { isRequired: true, judge: isFilled }),
  provider: text("Its export that makes the provider; absent: its only `create…` function.", filled),
  options: names(
    { type: "anything", isSecret: true, meaning: "An argument." },
    "Arguments of that function: apiKey, baseURL, headers, and whatever else it takes.",
  ),
  provider_options: names(
    { type: "anything", meaning: "One provider's options." },
    "Provider options of every request, by the provider's name.",
  ),
  fetch_media: section("Images and files that callers give by URL and the model does not take so.", {
    enabled: flag(true, "Fetches them, from the public internet alone."),
    max_bytes: integer(20 * 1024 * 1024, "The largest one, in bytes; also of data: URLs."),
    timeout_ms: integer(10_000, "The longest that fetching one may take."),
    allow_private: list(
      text("An address or a network.", { judge: isNetwork }),
      "Addresses and networks outside of the public internet that may be reached.",
    ),
  }),
} as const;

const command = {
  argv: {
    type: "list",
    isRequired: true,
    isFilled: true,
    each: text("The program, or an argument."),
    meaning: "The program and its arguments, in which {model} and {prompt} stand for those of the turn; no shell.",
  },
  cwd: text("Where it runs.", { default: ".", ...path }),
  env: list(text("A variable's name.", filled), "The gateway's own variables that it may see.", [
    ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"],
  ]),
  set_env: names(text("A variable's value.", { isSecret: true }), "Further variables, with their values."),
  input: choice(["json", "text", "none"], "What it reads: the turn, the last user message, or nothing.", {
    default: "json",
  }),
  output: choice(
    ["auto", "text", "jsonl"],
    "What it writes: text, or deltas as JSON Lines; auto: its first line decides.",
    {
      default: "auto",
    },
  ),
} as const;

const moduleKeys = {
  path: text("The JavaScript or TypeScript file whose default export makes the adapter.", {
    isRequired: true,
    ...path,
  }),
  options: names({ type: "anything", isSecret: true, meaning: "An option." }, "What that function is given."),
} as const;

const echo = {
  delay_ms: integer(0, "Pause before each word; 0 says everything at once.", 0, 60_000),
} as const;

/** Each kind's own keys. */
export const adapterKinds = {
  openai,
  "ai-sdk": aiSdk,
  command,
  module: moduleKeys,
  echo,
} as const satisfies Readonly<Record<string, Keys>>;
