/** The options of the openai adapter. */
import { baseUrlPattern } from "../http/target.ts";
import { answerTimeouts, milliseconds } from "../type.ts";

export const options = {
  type: "object",
  properties: {
    base_url: {
      type: "string",
      pattern: baseUrlPattern,
      title:
        'a URL like "https://api.example.com/v1", without user or password and without /chat/completions or /responses at its end, ' +
        'or "unix:/path"',
      default: "https://api.openai.com/v1",
      description:
        "The server's URL, up to the part before /chat/completions or /responses: http://…, https://…, or unix:/path/to.sock, " +
        "optionally followed by a colon and a path (unix:/run/model.sock:/v1). No user or password: use api_key or headers.",
    },
    wire: {
      enum: ["chat", "responses"],
      default: "chat",
      description:
        "The wire protocol of the server: chat (POST /chat/completions) or responses (POST /responses). " +
        "Only the latter carries reasoning from turn to turn and supports hosted tools.",
    },
    send_reasoning: {
      type: "boolean",
      default: false,
      description:
        "Send the model its reasoning from earlier answers, as reasoning_content, on the chat wire. " +
        "Some models that call tools require it; most servers reject the field.",
    },
    custom_tools: {
      enum: ["custom", "function"],
      default: "custom",
      description:
        "How tools that take free text are offered on the chat wire: unchanged (custom), or as functions with one string " +
        "(function), for servers without custom tools. Callers see no difference.",
    },
    max_tokens_field: {
      enum: ["max_completion_tokens", "max_tokens"],
      description:
        "The field for the output limit on the chat wire, for servers that know only one of them; many know only max_tokens, " +
        "and ignore the other. Absent: a chat caller's own, and max_completion_tokens for other callers.",
    },
    developer_role: {
      enum: ["developer", "system"],
      description:
        "The role of developer messages on the chat wire, for servers that do not know developer. " +
        "Absent: those of chat callers unchanged, those of other callers as system.",
    },
    api_key: {
      type: "string",
      format: "header",
      description: "Sent as Authorization: Bearer. Absent: no such header.",
    },
    headers: {
      type: "object",
      patternProperties: { "^.*$": { type: "string" } },
      description: "Additional headers for every request; they override Portico's own.",
    },
    organization: { type: "string", format: "header", description: "Sent as OpenAI-Organization." },
    project: { type: "string", format: "header", description: "Sent as OpenAI-Project." },
    proxy: {
      anyOf: [
        { type: "string", pattern: "^(https?|socks5?)://", title: 'a URL like "http://proxy.example.com:3128"' },
        { enum: [false] },
      ],
      description:
        "A proxy's URL, or false for none. Absent: HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment; " +
        "loopback addresses and unix sockets are then never proxied.",
    },
    connect_timeout_ms: milliseconds("The longest wait for a connection.", 5_000),
    ...answerTimeouts,
    max_response_bytes: {
      type: "integer",
      minimum: 1024,
      default: 64 * 1024 * 1024,
      description: "The largest non-streamed answer that is read.",
    },
  },
} as const;
