/** Directives at the start of a user text, which make the model fail, refuse, wait or talk at length. */
import { setImmediate as breathe } from "node:timers/promises";
import { GatewayError } from "../../core/errors.ts";
import { upstreamCodes } from "../failures.ts";
import type { Plan } from "./speech.ts";

export interface Directives {
  readonly sleepMs: number;
  readonly failure: Plan["failure"];
  readonly refuses: boolean;
  /** How often the text is said. */
  readonly times: number;
  /** What is left to say. */
  readonly text: string;
}

/** Followed without a pause: a text full of directives must not hold anybody up. */
const maxAtOnce = 1_000;

/** Follows directives one by one; each stands on its own line or in front of the text. */
export async function readDirectives(text: string): Promise<Directives> {
  let directives: Directives = { sleepMs: 0, failure: undefined, refuses: false, times: 1, text };
  let followed = 0;
  for (let next = followOne(directives); next !== undefined; next = followOne(directives)) {
    directives = next;
    followed += 1;
    if (followed % maxAtOnce === 0) await breathe();
  }
  // There must be words to fail after.
  if (directives.failure !== undefined && directives.text === "") return { ...directives, text };
  return directives.times === 1 ? directives : { ...directives, text: repeat(directives.text, directives.times) };
}

interface Directive {
  /** Matches at the start of the text; its only group is the argument. */
  readonly pattern: RegExp;
  follow(argument: string): Partial<Directives>;
}

const table: readonly Directive[] = [
  { pattern: /^FAIL before(?:\s+|$)/, follow: () => ({ failure: fail("adapter_error", 0) }) },
  {
    pattern: /^FAIL after (\d{1,6})(?:\s+|$)/,
    follow: (count) => ({ failure: fail("adapter_error", Number(count)) }),
  },
  {
    pattern: new RegExp(`^ERROR (${upstreamCodes.join("|")})(?:\\s+|$)`),
    follow: (code) => ({ failure: fail(code, 0) }),
  },
  { pattern: /^SLEEP (\d{1,6})(?:\s+|$)/, follow: (milliseconds) => ({ sleepMs: Number(milliseconds) }) },
  { pattern: /^REPEAT (\d{1,6})\s+(?=\S)/, follow: (times) => ({ times: Number(times) }) },
  { pattern: /^REFUSE\s+(?=\S)/, follow: () => ({ refuses: true }) },
];

/** REFUSE is the last directive: the rest of the text is the refusal. */
function followOne(directives: Directives): Directives | undefined {
  if (directives.refuses) return undefined;
  for (const { pattern, follow } of table) {
    const match = pattern.exec(directives.text);
    if (match === null) continue;
    return { ...directives, text: directives.text.slice(match[0].length), ...follow(match[1] ?? "") };
  }
  return undefined;
}

function fail(name: string, afterWords: number): Plan["failure"] {
  const code = upstreamCodes.find((known) => known === name) ?? "adapter_error";
  const retryAfterSeconds = code === "adapter_rate_limit" || code === "overloaded" ? 1 : undefined;
  const message = "The echo adapter failed, because the user text told it to.";
  return { afterWords, error: new GatewayError(code, message, { retryAfterSeconds }) };
}

const maxRepeatedCharacters = 10_000_000;

function repeat(text: string, times: number): string {
  if ((text.length + 1) * times > maxRepeatedCharacters) {
    throw new GatewayError(
      "adapter_bad_request",
      `REPEAT ${times} would say more than ${maxRepeatedCharacters} characters. Repeat less, or a shorter text.`,
    );
  }
  return `${text} `.repeat(times).slice(0, -1);
}
