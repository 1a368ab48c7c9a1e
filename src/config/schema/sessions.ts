/** The keys of what the gateway remembers. */
import { duration, histories, integer, list, section } from "./kinds.ts";

export const sessions = section("What the gateway remembers.", {
  store: {
    type: "string",
    pattern: "^(memory:|sqlite:(?!:memory:).+|rediss?://.+)$",
    title: '"memory:", "sqlite:" and a file, or "redis://" and a server',
    description:
      "Where turns are stored: `sqlite:FILE`, `memory:`, or `redis://…`; if absent, `portico.db` in the data folder.",
  },
  hints: list(
    {
      type: "string",
      pattern: "^(user|header:[A-Za-z0-9!#$%&'*+.^_`|~-]+)$",
      title: '"user" or "header:" and the name of a header',
    },
    "Where a request may name its session; the first one present counts.",
    ["header:X-Session-Id", "header:X-OpenWebUI-Chat-Id", "header:X-Conversation-Id", "user"],
  ),
  history: {
    enum: histories,
    default: "auto",
    description:
      "Whether callers send their whole history: `auto` learns it for each session, `resent` assumes it, " +
      "so that no two conversations under one hint ever meet.",
  },
  ttl: duration("30d", "How long a session, or a thread of one, may be idle before it is deleted."),
  max_turns_per_thread: integer(10_000, "The longest thread; beyond it the oldest turns are deleted."),
  max_bytes_per_thread: integer(
    64 * 1024 * 1024,
    "The same in bytes, approximately; the newest turn stays, however large it is.",
    64 * 1024,
  ),
  max_sessions_per_owner: integer(100_000, "Sessions of one owner; beyond it the longest idle ones are deleted."),
  prune_interval_ms: integer(3_600_000, "How often expired data is deleted."),
  idempotency_ttl: duration("24h", "How long an Idempotency-Key is valid."),
  events_ttl: duration("24h", "How long the stream of an answer can be resumed midway."),
  max_events_per_turn: integer(100_000, "Events of a running turn that can be replayed."),
  max_event_bytes_per_turn: integer(16 * 1024 * 1024, "The same in bytes, approximately."),
  max_background_turns: integer(
    1000,
    "Turns that may run in the background, and as many with an Idempotency-Key; more are refused with 503.",
  ),
  max_unattended_ms: integer(3_600_000, "How long a turn may run that nobody follows or asks for."),
  max_replay_bytes: integer(
    32 * 1024 * 1024,
    'Memory for replaying answers with an Idempotency-Key and "store": false.',
  ),
});
