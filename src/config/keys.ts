/** Every key of the config file: its form, its default, and what it means. */
import { choice, flag, type Form, integer, type Keys, list, names, section, secret, someOf, text } from "./form.ts";
import {
  isAdapterName,
  isAddress,
  isBaseUrl,
  isDigest,
  isFilled,
  isHeader,
  isMoment,
  isNetwork,
  isOrigin,
  isProxy,
  isStore,
  isToken,
  matching,
} from "./judges.ts";

const isDuration = matching(/^(never|[1-9]\d{0,5}[smhd])$/, 'a time like "90s", "15m", "24h" or "30d", or "never"');
const isModel = matching(/^([^*]+\*?|\*)$/, 'a model\'s name, or a prefix like "gpt-*"');
const isHint = matching(/^(user|header:[\w!#$%&'*+.^`|~-]+)$/, '"user", or "header:" and the name of a header');
const isOwner = matching(/^(?!default$)./s, "a name that is not empty, nor `default`, which owns the unnamed tokens");

const histories = ["auto", "resent"] as const;
/** What a named token may open. */
const doors = ["compat_chat", "compat_responses", "metrics"] as const;
const hints = ["header:X-Session-Id", "header:X-OpenWebUI-Chat-Id", "header:X-Conversation-Id", "user"];

const rate = {
  requests_per_minute: integer(undefined, "Requests that one owner may send in a minute; absent: no limit."),
  burst: integer(undefined, "Requests that may come at once; absent: as many as in a minute."),
};

const limits = section("Limits on size, number, rate and time.", {
  ...rate,
  max_body_bytes: integer(20 * 1024 * 1024, "The largest request body, in bytes.", 1, 512 * 1024 * 1024),
  max_concurrent_turns: integer(1000, "Turns that may run at the same time; more are refused with 503."),
  max_queued_per_thread: integer(32, "Requests that may wait for a busy session; more are refused with 429.", 0),
  heartbeat_ms: integer(10_000, "How long a stream may be silent before a comment is sent on it."),
  stalled_client_timeout_ms: integer(60_000, "How long a stream's reader may read nothing before it is cut off."),
  drain_timeout_ms: integer(30_000, "How long running turns may continue when the gateway stops.", 0),
});

const named = {
  name: text(isOwner, "Who owns what it creates; tokens of one name share it."),
  token: secret(isToken, "The token itself; either this or `sha256`."),
  sha256: text(isDigest, "The token's SHA-256 digest, so that the file does not hold it."),
  expires_at: text(isMoment, "When it stops working, e.g. `2030-01-31T00:00:00Z`."),
  endpoints: someOf(choice(doors, "An endpoint, or `GET /metrics`."), "What it opens; absent: both endpoints."),
  models: someOf(text(isModel, "A name, or a prefix like `gpt-*`."), "The models that it may use; absent: all."),
  history: choice(histories, "As in `gateway.sessions`, for callers with this token."),
  limits: section("This token's own limits.", {
    ...rate,
    max_concurrent_turns: integer(undefined, "Turns of this owner at the same time; more are refused with 429."),
  }),
};

const http = section("The front door.", {
  bind: {
    ...text(isAddress, "The listener: IPv4, IPv6, `0.0.0.0`, `::`, `localhost`, or `unix:/path`.", "127.0.0.1"),
    pathBehind: "unix:",
  },
  port: integer(8600, "Its port; 0 takes any free one.", 0, 65_535),
  socket_mode: choice(["600", "660", "666"], "Who may connect to a unix socket: user, group, everybody.", "600"),
  auth_token: secret(isToken, "The clients' token: opens the endpoints, and nothing else."),
  endpoints: section("What anyone with a token may use; with both off there is no listener.", {
    compat_chat: flag(false, "Enables `POST /v1/chat/completions`."),
    compat_responses: flag(false, "Enables `POST /v1/responses` and the routes that belong to it."),
  }),
  console: flag(false, "Serves the console, a page for the browser, at `/console`."),
  websocket: flag(true, "Accepts WebSockets on `/v1/responses`; off: 426."),
  expose_reasoning: flag(false, "Chat answers carry the reasoning though the request does not ask."),
  trusted_proxies: list(
    text(isProxy, "An address, a network like `10.1.0.0/16`, or `unix` for the socket's callers."),
    "Whose `X-Forwarded-For` is believed.",
  ),
  cors: section("Which web pages may call the endpoints.", {
    origins: list(text(isOrigin, "E.g. `https://app.example.com`."), "Exact origins; none: no CORS headers."),
  }),
  tokens: list(section("A named token.", named, ["name"]), "One token per app, or an old and a new one side by side."),
  limits,
});

const sessions = section("What the gateway remembers.", {
  store: {
    ...text(
      isStore,
      "Where turns are kept: `sqlite:FILE`, or `postgres://…` for many processes; absent: `portico.db` in the data folder.",
    ),
    pathBehind: "sqlite:",
  },
  hints: list(text(isHint, "`user`, or `header:NAME`."), "Where a request names its session; the first counts.", hints),
  history: choice(histories, "Whether callers show their whole history: learned, or known (`resent`).", "auto"),
  ttl: text(isDuration, "How long a thread may be idle before it is deleted.", "30d"),
  max_turns_per_thread: integer(10_000, "The longest thread; beyond it the oldest turns are deleted."),
  max_sessions_per_owner: integer(100_000, "Sessions of one owner; beyond it the longest idle ones are deleted."),
  idempotency_ttl: text(isDuration, "How long an `Idempotency-Key` is valid.", "24h"),
  max_background_turns: integer(1000, "Turns that may run in the background; more are refused with 503."),
});

/** The whole file; an embedding program may pass adapters beside it, which stand in it by their names. */
export function toFileForm(hasGiven = false) {
  const kinds: Readonly<Record<string, Keys>> = hasGiven ? { ...adapterKinds, given } : adapterKinds;
  const gateway = section("The gateway.", {
    auth: section("Who may operate the gateway.", {
      token: secret(isToken, "The general token, the operator's: opens everything."),
    }),
    http,
    adapters: names(toAdapterForm(kinds), "What answers, by a name of your choice; none: what the environment offers."),
    default_adapter: text(isAdapterName, "Where turns go; needed if there are several adapters."),
    models: names(text(isAdapterName, "An adapter's name."), "Which one answers for a model: its name, or `gpt-*`."),
    sessions,
    data_dir: { ...text(isFilled, "The folder of the database and the generated tokens.", ".portico"), pathBehind: "" },
    log: section("What the gateway logs.", {
      level: choice(["silent", "error", "info"], "Nothing, failures, or also requests and turns.", "info"),
    }),
    workers: integer(1, "Processes that share the port; more than one needs a `postgres://` store.", 1, 64),
  });
  return section("Portico's configuration.", {
    $schema: text(undefined, "Where an editor finds this schema."),
    gateway,
  });
}

const isProxyUrl = matching(/^(https?|socks5?):\/\/./, 'a URL like "http://proxy.example.com:3128"');

/** Of every kind of adapter. */
export const commonKeys = {
  model: text(isFilled, "The model to ask, whatever name a caller sends."),
  models: names(text(isFilled, "The adapter's own name."), "Names that callers may send, each with the adapter's own."),
  context_window: integer(undefined, "Tokens the model takes; longer remembered conversations lose their middle."),
  fallback: list(text(isAdapterName, "An adapter's name."), "Who is asked when this one cannot answer, in this order."),
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
  headers: names(secret(isHeader, "A header's value."), "Further headers, which count more than ours."),
  wire: choice(["chat", "responses"], "What the server speaks: chat completions, or responses.", "chat"),
  proxy: secret(isProxyUrl, "A proxy's URL; absent: as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say."),
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
  cwd: { ...text(isFilled, "Where it runs.", "."), pathBehind: "" },
  env: list(text(isFilled, "A variable's name."), "The gateway's own variables that it may see.", usualVariables),
  set_env: names(secret(undefined, "A variable's value."), "Further variables, with their values."),
  input: choice(["json", "text", "none"], "What it reads: the turn, the last user message, or nothing.", "json"),
  output: choice(["text", "jsonl"], "What it writes: plain text, or deltas as JSON Lines.", "text"),
};

const moduleKeys = {
  path: {
    ...text(isFilled, "The JavaScript or TypeScript file whose default export makes the adapter."),
    pathBehind: "",
  },
  options: names(options, "What that function is given."),
};

const echo = {
  delay_ms: integer(0, "Pause before each word; 0 says everything at once.", 0, 60_000),
};

/** The program knows better whether to ask again. */
const given = {
  retries: integer(0, "How often it is asked again when it fails before its first word.", 0, 10),
};

/** Each kind's own keys. */
const adapterKinds = { openai, "ai-sdk": aiSdk, command, module: moduleKeys, echo };

const requiredKeys: ReadonlySet<string> = new Set(["type", "package", "argv", "path"]);

function toAdapterForm(kinds: Readonly<Record<string, Keys>>): Form {
  const anyOf = Object.entries(kinds).map(([kind, own]) => {
    const keys = { type: choice([kind], "The kind of adapter."), ...commonKeys, ...own };
    return section(
      "What answers.",
      keys,
      Object.keys(keys).filter((key) => requiredKeys.has(key)),
    );
  });
  return { description: "What answers.", anyOf };
}
