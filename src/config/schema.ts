/** The schema of the configuration file: every key with its type, its default and what it means. */
import type { Complete, ObjectSchema, Schema } from "../core/schema.ts";
import { endpointNames, logLevels } from "./config.ts";

/** The options of each type of adapter, by the type's name. */
export type AdapterOptions = Readonly<Record<string, ObjectSchema>>;

/** A file that has passed the schema, with its defaults filled in. */
export type FileShape = Complete<typeof fileSchema>;

const closed = { additionalProperties: false } as const;
const maxTimerMs = 2_147_483_647;

function count(fallback: number, description: string, minimum = 1) {
  return { type: "integer", minimum, maximum: 2_147_483_647, default: fallback, description } as const;
}

function milliseconds(fallback: number, description: string, minimum = 1) {
  return { type: "integer", minimum, maximum: maxTimerMs, default: fallback, description } as const;
}

function duration(fallback: string, description: string) {
  return {
    type: "string",
    pattern: "^(never|[1-9][0-9]{0,5}(s|m|h|d))$",
    title: 'a time like "90s", "15m", "24h" or "30d", or "never"',
    default: fallback,
    description,
  } as const;
}

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
    max_concurrent_turns: count(1000, "Turns that may run at the same time; more are refused with 503."),
    max_queued_per_thread: count(16, "Requests that may wait for a busy session; more are refused with 429.", 0),
    headers_timeout_ms: milliseconds(10_000, "How long a client may take to send the headers."),
    body_idle_timeout_ms: milliseconds(30_000, "How long a body may make no progress."),
    heartbeat_ms: milliseconds(10_000, "A comment is sent on a stream that has been silent for so long."),
    max_unsent_bytes: count(1024 * 1024, "Bytes that a slow reader may leave unread before the adapter is paused."),
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
      description: "The owner of what is made with this token. Unique, and not `default`.",
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
      description: "This token's own rate, in place of the general one.",
      properties: rateKeys,
    },
  },
} as const;

const http = {
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

const adapterKeys = {
  model: { type: "string", minLength: 1, description: "The model that is asked whatever name a caller sends." },
  models: {
    type: "object",
    patternProperties: { "^.*$": { type: "string", minLength: 1 } },
    default: {},
    description: "Names that callers may send, each with the adapter's own name for it.",
  },
  context_window: {
    type: "integer",
    minimum: 1,
    maximum: 2_147_483_647,
    description: "Tokens that the model takes, question and answer together; longer conversations lose their middle.",
  },
  fallback: {
    type: "array",
    items: { type: "string" },
    default: [],
    description: "Adapters to ask when this one cannot answer, in this order; only before its first word.",
  },
  retry: {
    type: "object",
    ...closed,
    default: {},
    description: "Asking again where that is safe.",
    properties: {
      times: count(2, "How often this adapter is asked again when it fails before its first word.", 0),
      base_ms: milliseconds(200, "About how long to wait before the first time; then twice as long each time."),
      max_wait_ms: milliseconds(1_000, "How long a turn may wait in all; what would take longer is told at once.", 0),
    },
  },
  breaker: {
    type: "object",
    ...closed,
    default: {},
    description: "Keeps turns away from an adapter that is down.",
    properties: {
      failures: count(5, "Failures in a row after which nobody is let through for a while; 0 switches it off.", 0),
      open_ms: milliseconds(10_000, "For how long."),
    },
  },
} as const;

/** The keys that every adapter has. */
export type AdapterShape = { readonly type: string } & Complete<{ readonly properties: typeof adapterKeys }>;

/** The file without its adapters' own options, which are known by their type only. */
export const fileSchema = {
  type: "object",
  ...closed,
  properties: {
    $schema: { type: "string", description: "Where an editor finds this schema." },
    gateway: {
      type: "object",
      ...closed,
      default: {},
      description: "The gateway.",
      properties: {
        auth: {
          type: "object",
          ...closed,
          default: {},
          description: "Who may operate the gateway.",
          properties: {
            token: {
              type: "string",
              description:
                "The general token: opens the operator routes, and the endpoints when http.auth_token is not set.",
            },
          },
        },
        data_dir: {
          type: "string",
          minLength: 1,
          default: ".portico",
          description: "Folder of the database and of the generated token.",
        },
        http,
        adapters: {
          type: "object",
          patternProperties: { "^.*$": {} },
          default: {},
          description: "What answers, by a name of your choice; when empty, what the environment offers.",
        },
        default_adapter: {
          type: "string",
          description: "The name of the adapter to which turns go; needed when there are several.",
        },
        models: {
          type: "object",
          patternProperties: { "^.*$": { type: "string" } },
          default: {},
          description: "Which adapter answers for a model: a name, or the beginning of names like `gpt-*`.",
        },
        sessions: {
          type: "object",
          ...closed,
          default: {},
          description: "What the gateway remembers.",
          properties: {
            store: {
              type: "string",
              pattern: "^(memory:|sqlite:(?!:memory:).+)$",
              title: '"memory:" or "sqlite:" and a file',
              description: "Where turns are kept; `portico.db` in the data folder when absent.",
            },
            hints: {
              type: "array",
              items: {
                type: "string",
                pattern: "^(user|header:[A-Za-z0-9!#$%&'*+.^_`|~-]+)$",
                title: '"user" or "header:" and the name of a header',
              },
              default: ["header:X-Session-Id", "header:X-OpenWebUI-Chat-Id", "header:X-Conversation-Id", "user"],
              description: "Where a request may name its session; the first that is there counts.",
            },
            history: {
              enum: ["auto", "resent"],
              default: "auto",
              description:
                "Whether callers send their whole history: `auto` learns it for each session, `resent` takes it for granted, " +
                "so that no two conversations under one hint ever meet.",
            },
            ttl: duration("30d", "Sessions in which nothing was said for so long are deleted."),
            max_turns_per_thread: count(10_000, "The longest thread; beyond it the oldest turns are deleted."),
            max_sessions_per_owner: count(
              100_000,
              "Sessions of one owner; beyond it those idle for longest are deleted.",
            ),
            prune_interval_ms: milliseconds(3_600_000, "How often what is no longer kept is looked for."),
            idempotency_ttl: duration("24h", "For how long an Idempotency-Key is known."),
            events_ttl: duration("24h", "For how long the stream of an answer can be taken up in the middle."),
            max_events_per_turn: count(100_000, "Events of a running turn that can be told again."),
            max_event_bytes_per_turn: count(16 * 1024 * 1024, "The same in bytes, about."),
            max_background_turns: count(1000, "Turns that may run without their callers; more are refused with 503."),
            max_unattended_ms: milliseconds(3_600_000, "How long a turn may go on that nobody follows."),
            max_replay_bytes: count(
              32 * 1024 * 1024,
              'Answers with an Idempotency-Key and "store": false are told again from memory; this is how much of it.',
            ),
          },
        },
        log: {
          type: "object",
          ...closed,
          default: {},
          description: "What the gateway tells about itself.",
          properties: {
            level: { enum: [...logLevels], default: "info", description: "The least important line that is logged." },
          },
        },
      },
    },
  },
} as const;

/** One adapter of a type: `type`, the keys that every adapter has, and its own. */
export function adapterSchema(type: string, options: ObjectSchema): Schema {
  return {
    type: "object",
    ...closed,
    required: ["type", ...(options.required ?? [])],
    properties: {
      type: { type: "string", const: type, description: "The kind of adapter." },
      ...adapterKeys,
      ...options.properties,
    },
  };
}
