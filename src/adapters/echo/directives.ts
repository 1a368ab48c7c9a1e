/** Directives at the start of a user text, which make the model fail, refuse, wait or talk at length. */
import { GatewayError } from "../../core/errors.ts";
import { reportableCodes } from "../reported.ts";

interface Directives {
  readonly sleepMs: number;
  readonly failure: GatewayError | undefined;
  /** How many it says before it fails. */
  readonly maxWords: number;
  readonly refuses: boolean;
  /** What is left to say. */
  readonly text: string;
}

/** Each stands on its own line or in front of the text; REFUSE is the last. */
export function readDirectives(said: string): Directives {
  const found = { sleepMs: 0, failure: undefined as GatewayError | undefined, maxWords: Infinity, refuses: false };
  let text = said;
  let times = 1;
  for (let match = directive.exec(text); match !== null && !found.refuses; match = directive.exec(text)) {
    const { code, words, ms, repeat } = match.groups ?? {};
    text = text.slice(match[0].length);
    if (repeat !== undefined) times = Number(repeat);
    else if (ms !== undefined) found.sleepMs = Number(ms);
    else if (match[0].startsWith("REFUSE")) found.refuses = true;
    else [found.failure, found.maxWords] = [fail(code ?? "adapter_error"), Number(words ?? 0)];
  }
  // There must be words to fail after.
  return { ...found, text: found.failure !== undefined && text === "" ? said : say(text, times) };
}

/** The codes of an adapter that are not about the request. */
const codes = reportableCodes.filter((code) => code.startsWith("adapter_") || code === "overloaded");

const directive = new RegExp(
  "^(?:FAIL before(?:\\s+|$)" +
    "|FAIL after (?<words>\\d{1,6})(?:\\s+|$)" +
    `|ERROR (?<code>${codes.join("|")})(?:\\s+|$)` +
    "|SLEEP (?<ms>\\d{1,6})(?:\\s+|$)" +
    "|REPEAT (?<repeat>\\d{1,6})\\s+(?=\\S)" +
    "|REFUSE\\s+(?=\\S))",
);

function fail(name: string): GatewayError {
  const code = codes.find((known) => known === name) ?? "adapter_error";
  const retryAfterSeconds = code === "adapter_rate_limit" || code === "overloaded" ? 1 : undefined;
  const message = "The echo adapter failed, because the user text told it to.";
  return new GatewayError(code, message, { retryAfterSeconds });
}

const maxCharacters = 10_000_000;

function say(text: string, times: number): string {
  if (times * (text.length + 1) <= maxCharacters || times === 1) return `${text} `.repeat(times).slice(0, -1);
  const message = `REPEAT ${times} would say more than ${maxCharacters} characters. Repeat less, or a shorter text.`;
  throw new GatewayError("adapter_bad_request", message);
}
