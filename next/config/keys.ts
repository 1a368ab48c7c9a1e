/** Every key of the config file but an adapter's: its form, its default, and what it means. */
import { choice, flag, integer, type Keys, type Kinds, list, names, optionalInteger, section, text } from "./form.ts";
import { commonKeys } from "./adapters.ts";
import { isAddress, isFilled, isMoment, isOrigin, isProxy, isStore, isToken, matching } from "./judges.ts";

const secretToken = { isSecret: true, judge: isToken } as const;
const isDuration = matching(/^(never|[1-9]\d{0,5}[smhd])$/, 'a time like "90s", "15m", "24h" or "30d", or "never"');
const isPattern = matching(/^([^*]+\*?|\*)$/, 'a model\'s name, or a prefix like "gpt-*"');
const isHint = matching(/^(user|header:[\w!#$%&'*+.^`|~-]+)$/, '"user", or "header:" and the name of a header');
const isDigest = matching(/^[\da-f]{64}$/i, "64 hexadecimal digits");
const isOwner = matching(/^(?!default$)./s, "a name that is not empty, nor `default`, which owns the unnamed tokens");

const histories = ["auto", "resent"] as const;
/** What a named token may open. */
const doors = ["compat_chat", "compat_responses", "metrics"] as const;

const ofOneToken = {
  requests_per_minute: optionalInteger(
    "Requests to the endpoints in a minute, of the tokens of one name; absent: any.",
  ),
  burst: optionalInteger("Requests that may come at once; absent: as many as in a minute."),
} as const;

const limits = section("Limits on size, number, rate and time.", {
  max_body_bytes: integer(20 * 1024 * 1024, "The largest request body, in bytes.", 1, 512 * 1024 * 1024),
  max_concurrent_turns: integer(1000, "Turns that may run at the same time; more are refused with 503."),
  max_queued_per_thread: integer(32, "Requests that may wait for a busy session; more are refused with 429.", 0),
  ...ofOneToken,
  heartbeat_ms: integer(10_000, "How long a stream may be silent before a comment is sent on it."),
  stalled_client_timeout_ms: integer(60_000, "How long a stream's reader may read nothing before it is cut off."),
  drain_timeout_ms: integer(30_000, "How long running turns may continue when the gateway stops.", 0),
});

const token = section("A named token.", {
  name: text("Who owns what it creates; tokens of one name share it.", { isRequired: true, judge: isOwner }),
  token: text("The token itself; either this or `sha256`.", secretToken),
  sha256: text("The token's SHA-256 digest, so that the file does not hold it.", { judge: isDigest }),
  expires_at: text("When it stops working, e.g. `2030-01-31T00:00:00Z`.", { judge: isMoment }),
  endpoints: {
    type: "list",
    each: choice(doors, "An endpoint, or `GET /metrics`."),
    meaning: "What it opens; absent: both endpoints.",
  },
  models: {
    type: "list",
    isFilled: true,
    each: text("A model's name, or a prefix.", { judge: isPattern }),
    meaning: "The models that it may use: names, or prefixes like `gpt-*`; absent: all.",
  },
  history: choice(histories, "As in `gateway.sessions`, for callers with this token."),
  limits: section("This token's own limits.", {
    ...ofOneToken,
    max_concurrent_turns: optionalInteger("Turns of this token's name at the same time; more are refused with 429."),
  }),
});

const http = section("The front door.", {
  bind: text("The listener: IPv4, IPv6, `0.0.0.0`, `::`, `localhost`, or `unix:/path`.", {
    default: "127.0.0.1",
    pathBehind: "unix:",
    judge: isAddress,
  }),
  port: integer(8600, "Its port; 0 takes any free one.", 0, 65_535),
  socket_mode: choice(["600", "660", "666"], "Who may connect to a unix socket: the user, the group, everybody.", {
    default: "600",
  }),
  auth_token: text("The clients' token: opens the endpoints, and nothing else.", secretToken),
  endpoints: section("What anyone with a token may use; with both off there is no listener.", {
    compat_chat: flag(false, "Enables `POST /v1/chat/completions`."),
    compat_responses: flag(false, "Enables `POST /v1/responses` and the routes that belong to it."),
  }),
  console: flag(false, "Serves the console, a page for the browser, at `/console`."),
  websocket: flag(true, "Accepts WebSockets on `/v1/responses`; off: 426."),
  expose_reasoning: flag(false, "Chat answers carry the reasoning though the request does not ask."),
  trusted_proxies: list(
    text("An address, a network like `10.1.0.0/16`, or `unix`.", { judge: isProxy }),
    "Whose `X-Forwarded-For` is believed: addresses, networks, or `unix` for the socket's callers.",
  ),
  cors: section("Which web pages may call the endpoints.", {
    origins: list(
      text("An exact origin.", { judge: isOrigin }),
      "Exact origins like `https://app.example.com`; none: no CORS headers.",
    ),
  }),
  tokens: list(token, "Named tokens: one per app, or an old and a new one side by side."),
  limits,
});

const sessions = section("What the gateway remembers.", {
  store: text("Where turns are kept: `sqlite:FILE`; absent: `portico.db` in the data folder.", {
    hasPassword: true,
    pathBehind: "sqlite:",
    judge: isStore,
  }),
  hints: list(
    text("`user`, or `header:` and a header's name.", { judge: isHint }),
    "Where a request may name its session; the first one present counts.",
    ["header:X-Session-Id", "header:X-OpenWebUI-Chat-Id", "header:X-Conversation-Id", "user"],
  ),
  history: choice(histories, "Whether callers show their whole history: learned (`auto`), or known (`resent`).", {
    default: "auto",
  }),
  ttl: text("How long a thread may be idle before it is deleted.", { default: "30d", judge: isDuration }),
  max_turns_per_thread: integer(10_000, "The longest thread; beyond it the oldest turns are deleted."),
  max_sessions_per_owner: integer(100_000, "Sessions of one owner; beyond it the longest idle ones are deleted."),
  idempotency_ttl: text("How long an `Idempotency-Key` is valid.", { default: "24h", judge: isDuration }),
  max_background_turns: integer(1000, "Turns that may run in the background; more are refused with 503."),
});

/** The whole file, with these kinds of adapters. */
export function toFileForm(kinds: Readonly<Record<string, Keys>>) {
  const adapter: Kinds = { type: "kinds", common: commonKeys, kinds, meaning: "What answers." };
  const gateway = section("The gateway.", {
    auth: section("Who may operate the gateway.", {
      token: text("The general token, the operator's: opens everything.", secretToken),
    }),
    http,
    adapters: names(adapter, "What answers, by a name of your choice; none: what the environment offers."),
    default_adapter: text("Where turns go; needed if there are several adapters."),
    models: names(text("An adapter's name."), "Which adapter answers for a model: its name, or a prefix like `gpt-*`."),
    sessions,
    data_dir: text("The folder of the database and the generated tokens.", {
      default: ".portico",
      pathBehind: "",
      judge: isFilled,
    }),
    log: section("What the gateway logs.", {
      level: choice(["silent", "error", "info"], "Nothing, failures, or also requests and turns.", { default: "info" }),
    }),
    workers: {
      ...integer(1, "Processes that share the port.", 1, 1),
      allowed: "1, because a store in SQLite belongs to one process; more will need one in PostgreSQL",
    },
  });
  return section("Portico's configuration.", {
    $schema: text("Where an editor finds the schema of this file."),
    gateway,
  });
}
