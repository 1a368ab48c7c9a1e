/** The keys of what the gateway remembers. */
import { duration, integer, list, section } from "./kinds.ts";

export const sessions = section("What the gateway remembers.", {
  store: {
    type: "string",
    pattern: "^(memory:|sqlite:(?!:memory:).+|rediss?://.+)$",
    title: '"memory:", "sqlite:" and a file, or "redis://" and a server',
    description: "Where turns are kept; `portico.db` in the data folder when absent.",
  },
  hints: list(
    {
      type: "string",
      pattern: "^(user|header:[A-Za-z0-9!#$%&'*+.^_`|~-]+)$",
      title: '"user" or "header:" and the name of a header',
    },
    "Where a request may name its session; the first that is there counts.",
    ["header:X-Session-Id", "header:X-OpenWebUI-Chat-Id", "header:X-Conversation-Id", "user"],
  ),
  history: {
    enum: ["auto", "resent"],
    default: "auto",
    description:
      "Whether callers send their whole history: `auto` learns it for each session, `resent` takes it for granted, " +
      "so that no two conversations under one hint ever meet.",
  },
  ttl: duration("30d", "Sessions, and threads of a session, in which nothing was said for so long are deleted."),
  max_turns_per_thread: integer(10_000, "The longest thread; beyond it the oldest turns are deleted."),
  max_sessions_per_owner: integer(100_000, "Sessions of one owner; beyond it those idle for longest are deleted."),
  prune_interval_ms: integer(3_600_000, "How often what is no longer kept is looked for."),
  idempotency_ttl: duration("24h", "For how long an Idempotency-Key is known."),
  events_ttl: duration("24h", "For how long the stream of an answer can be taken up in the middle."),
  max_events_per_turn: integer(100_000, "Events of a running turn that can be told again."),
  max_event_bytes_per_turn: integer(16 * 1024 * 1024, "The same in bytes, about."),
  max_background_turns: integer(
    1000,
    "Turns that may run in the background, and as many with an Idempotency-Key; more are refused with 503.",
  ),
  max_unattended_ms: integer(3_600_000, "How long a turn may go on that nobody follows."),
  max_replay_bytes: integer(
    32 * 1024 * 1024,
    'Answers with an Idempotency-Key and "store": false are told again from memory; this is how much of it.',
  ),
});
