/** The keys of the front door. */
import { flag, histories, integer, list, optionalInteger, section } from "./kinds.ts";

/** The keys of the endpoints that can be enabled. */
export const endpointNames = ["compat_chat", "compat_responses"] as const;

/** What a named token may open. */
const opened = [...endpointNames, "metrics"] as const;

const mostRequests = 1_000_000_000;

const rateKeys = {
  requests_per_minute: optionalInteger(
    "Requests to the endpoints that the tokens of one name may send in a minute; operator requests do not count.",
    mostRequests,
  ),
  burst: optionalInteger("Requests that may come at once; if absent, as many as requests_per_minute.", mostRequests),
};

const limits = section("Limits on size, number, rate and time.", {
  max_body_bytes: integer(20 * 1024 * 1024, "The largest request body, in bytes.", 1, 512 * 1024 * 1024),
  max_json_depth: integer(64, "How deeply the JSON of a body may be nested."),
  max_messages: integer(4096, "The most messages or items in one request."),
  max_tools: integer(4096, "The most tools in one request, including those in namespaces and in items."),
  max_concurrent_turns: integer(1000, "Turns that may run at the same time; more are refused with 503."),
  max_pipelined_requests: integer(
    100,
    "Requests that may wait for their answers on one connection; with more, the connection is cut.",
  ),
  max_arriving_bytes: integer(
    256 * 1024 * 1024,
    "Total bytes of request bodies still arriving; beyond it the slowest of the token's name that sends the most is refused with 503.",
    1,
    Number.MAX_SAFE_INTEGER,
  ),
  max_held_bytes: integer(
    512 * 1024 * 1024,
    "Total bytes of memory for requests in progress and unread answers; one token's name may take as much as it leaves to the others; more is refused with 503. What WebSockets remember may take another quarter of this, and earlier requests, in case clients resend them, a sixteenth.",
    1,
    Number.MAX_SAFE_INTEGER,
  ),
  max_queued_per_thread: integer(16, "Requests that may wait for a busy session; more are refused with 429.", 0),
  headers_timeout_ms: integer(10_000, "How long a client may take to send the headers."),
  body_idle_timeout_ms: integer(30_000, "How long a body may make no progress."),
  // More than the 120 seconds of Caddy, less than the 240 after which some networks forget connections.
  keep_alive_timeout_ms: integer(
    130_000,
    "How long a connection may be idle between two requests: longer than a proxy in front keeps it.",
    1,
    86_400_000,
  ),
  heartbeat_ms: integer(10_000, "How long a stream may be silent before a comment is sent on it."),
  max_unsent_bytes: integer(
    1024 * 1024,
    "Bytes that a slow reader may leave unread before the adapter is paused; less than 65536 counts as that.",
  ),
  stalled_client_timeout_ms: integer(60_000, "How long a stream's reader may read nothing before the stream is cut."),
  ...rateKeys,
  max_auth_failures_per_minute: integer(
    10,
    "Wrong tokens from one IPv4 address or IPv6 network (/64) before further ones are refused with 429.",
  ),
  drain_timeout_ms: integer(30_000, "How long running turns may continue when the gateway stops.", 0),
});

const token = {
  type: "object",
  required: ["name"],
  additionalProperties: false,
  properties: {
    name: {
      type: "string",
      minLength: 1,
      description: "The owner of what this token creates, not `default`. Tokens of one name share everything.",
    },
    token: { type: "string", description: "The token itself. Either this or sha256." },
    sha256: {
      type: "string",
      pattern: "^[0-9a-fA-F]{64}$",
      title: "64 hexadecimal digits",
      description: "The SHA-256 digest of the token, so that the file does not hold it. Either this or token.",
    },
    expires_at: {
      type: "string",
      pattern: "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d+)?)?(Z|[+-]\\d{2}:\\d{2})$",
      title: 'a date and time like "2030-01-31T00:00:00Z"',
      description: "When the token stops working.",
    },
    endpoints: {
      type: "array",
      items: { enum: opened },
      description: "The endpoints that this token opens; if absent, both. `metrics` opens `GET /metrics`.",
    },
    models: {
      type: "array",
      minItems: 1,
      items: {
        type: "string",
        pattern: "^([^*]+\\*?|\\*)$",
        title: 'a model\'s name, or a prefix like "gpt-*"',
      },
      description: "The models that this token may use: exact names, or prefixes like `gpt-*`; if absent, all.",
    },
    history: {
      enum: histories,
      description: "Whether callers with this token send their whole history; if absent, as in gateway.sessions.",
    },
    limits: section("This token's own rate, instead of the general one, and its share of the turns.", {
      ...rateKeys,
      max_concurrent_turns: optionalInteger(
        "Turns, including background turns, and work on conversations that this token's name may have at the same time; more are refused with 429. It may also follow that many turns and open that many WebSockets, but at least four.",
      ),
    }),
  },
} as const;

export const http = section("The front door.", {
  bind: {
    type: "string",
    default: "127.0.0.1",
    description: "Address of the listener: IPv4, IPv6, `0.0.0.0`, `::`, `localhost`, or `unix:/path`.",
  },
  port: integer(8600, "Port of the listener; 0 takes any free one.", 0, 65_535),
  socket_mode: {
    enum: ["600", "660", "666"],
    default: "600",
    description:
      "Who may connect to a unix socket: the gateway's user, also its group, or everybody on the machine. A token is always needed.",
  },
  trusted_proxies: list(
    { type: "string" },
    "Proxies whose `X-Forwarded-For` is believed: addresses, networks like `10.1.0.0/16`, or `unix` for whoever connects to the unix socket.",
  ),
  auth_token: {
    type: "string",
    description: "Token that opens the endpoints. When set, the general token no longer opens them.",
  },
  endpoints: section("The endpoints that anyone with a token may use. With both off there is no listener.", {
    compat_chat: flag(false, "Enables `POST /v1/chat/completions`."),
    compat_responses: flag(false, "Enables `POST /v1/responses` and what belongs to it."),
  }),
  console: flag(false, "Serves the console, a page for the browser, at `/console`. What it shows needs a token."),
  tokens: list(token, "Named tokens: one per app, or an old and a new one side by side."),
  limits,
  cors: section("Which web pages may call the endpoints.", {
    origins: list({ type: "string" }, 'Exact origins like "https://app.example.com"; none sends no CORS headers.'),
  }),
  websocket: section("The WebSocket form of the responses endpoint.", {
    enabled: flag(true, "Accepts WebSocket connections on `/v1/responses`; otherwise an upgrade is answered with 426."),
    max_connections: integer(1000, "Concurrent WebSocket connections; more are refused with 503."),
    max_minutes: integer(60, "How many minutes a connection may last."),
  }),
  expose_reasoning: flag(false, "Chat answers carry the model's reasoning in `reasoning_content`."),
});
