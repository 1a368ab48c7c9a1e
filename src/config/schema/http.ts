/** The keys of the front door. */
import { endpointNames } from "../config.ts";
import { closed, count, milliseconds } from "./kinds.ts";

const rateKeys = {
  requests_per_minute: {
    type: "integer",
    minimum: 1,
    maximum: 1_000_000_000,
    description: "Requests that one token may send in a minute.",
  },
  burst: {
    type: "integer",
    minimum: 1,
    maximum: 1_000_000_000,
    description: "Requests that may come at once; as many as requests_per_minute when absent.",
  },
} as const;

const limits = {
  type: "object",
  ...closed,
  default: {},
  description: "Bounds on size, number, rate and time.",
  properties: {
    max_body_bytes: {
      type: "integer",
      minimum: 1,
      maximum: 536_870_912,
      default: 20 * 1024 * 1024,
      description: "The largest request body, in bytes.",
    },
    max_json_depth: count(64, "How deeply the JSON of a body may be nested."),
    max_messages: count(4096, "The most messages or items in one request."),
    max_tools: count(4096, "The most tools in one request, those of namespaces and those that items bring included."),
    max_concurrent_turns: count(1000, "Turns that may run at the same time; more are refused with 503."),
    max_arriving_bytes: count(
      256 * 1024 * 1024,
      "Bytes of request bodies that may be on their way together; the slowest is refused with 503.",
    ),
    max_queued_per_thread: count(16, "Requests that may wait for a busy session; more are refused with 429.", 0),
    headers_timeout_ms: milliseconds(10_000, "How long a client may take to send the headers."),
    body_idle_timeout_ms: milliseconds(30_000, "How long a body may make no progress."),
    heartbeat_ms: milliseconds(10_000, "A comment is sent on a stream that has been silent for so long."),
    max_unsent_bytes: count(
      1024 * 1024,
      "Bytes that a slow reader may leave unread before the adapter is paused; less than 65536 counts as that.",
    ),
    stalled_client_timeout_ms: milliseconds(60_000, "A stream whose reader takes nothing for so long is cut."),
    ...rateKeys,
    max_auth_failures_per_minute: count(10, "Wrong tokens from one address before further ones are refused with 429."),
    drain_timeout_ms: milliseconds(30_000, "How long running turns may go on when the gateway stops.", 0),
  },
} as const;

const token = {
  type: "object",
  required: ["name"],
  ...closed,
  properties: {
    name: {
      type: "string",
      minLength: 1,
      description: "The owner of what is made with this token, not `default`. Tokens of one name share everything.",
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
      description: "From then on the token opens nothing.",
    },
    endpoints: {
      type: "array",
      items: { enum: [...endpointNames] },
      description: "The endpoints that this token opens; every one when absent.",
    },
    limits: {
      type: "object",
      ...closed,
      default: {},
      description: "This token's own rate, in place of the general one, and its share of the turns.",
      properties: {
        ...rateKeys,
        max_concurrent_turns: {
          type: "integer",
          minimum: 1,
          maximum: 2_147_483_647,
          description:
            "Turns, and work on conversations, that this token's name may have going on at the same time; more are refused with 429. Turns in the background do not count.",
        },
      },
    },
  },
} as const;

export const http = {
  type: "object",
  ...closed,
  default: {},
  description: "The front door.",
  properties: {
    bind: {
      type: "string",
      default: "127.0.0.1",
      description: "Address of the listener: IPv4, IPv6, `0.0.0.0`, `::`, `localhost`, or `unix:/path`.",
    },
    port: {
      type: "integer",
      minimum: 0,
      maximum: 65_535,
      default: 8600,
      description: "Port of the listener; 0 takes any free one.",
    },
    auth_token: {
      type: "string",
      description: "Token that opens the endpoints. When set, the general token no longer opens them.",
    },
    endpoints: {
      type: "object",
      ...closed,
      default: {},
      description: "What is open to whoever holds a token. With both off there is no listener.",
      properties: {
        compat_chat: { type: "boolean", default: false, description: "Enables `POST /v1/chat/completions`." },
        compat_responses: {
          type: "boolean",
          default: false,
          description: "Enables `POST /v1/responses` and what belongs to it.",
        },
      },
    },
    console: {
      type: "boolean",
      default: false,
      description: "Serves the console, a page for the browser, at `/console`. What it shows needs a token.",
    },
    tokens: {
      type: "array",
      items: token,
      default: [],
      description: "Named tokens: one for each app, or an old and a new one side by side.",
    },
    limits,
    cors: {
      type: "object",
      ...closed,
      default: {},
      description: "Which web pages may call the endpoints.",
      properties: {
        origins: {
          type: "array",
          items: { type: "string" },
          default: [],
          description: 'Exact origins like "https://app.example.com"; none sends no CORS headers.',
        },
      },
    },
    websocket: {
      type: "object",
      ...closed,
      default: {},
      description: "The WebSocket form of the responses endpoint.",
      properties: {
        enabled: {
          type: "boolean",
          default: true,
          description: "`/v1/responses` may be spoken to over WebSocket; otherwise an upgrade is answered with 426.",
        },
        max_connections: count(1000, "WebSocket connections at the same time; more are refused with 503."),
        max_minutes: count(60, "How many minutes a connection may last."),
      },
    },
    expose_reasoning: {
      type: "boolean",
      default: false,
      description: "Chat answers carry the model's reasoning in `reasoning_content`.",
    },
  },
} as const;
