/**
 * Conversations as tables: what a client sends, a line an item, and what the model must be shown. A line is `user: …`,
 * `assistant: …`, `system: …`, `developer: …`, `call ID: NAME ARGUMENTS` or `output ID: …`.
 */
import assert from "node:assert/strict";
import { type Endpoint, type Heard, tell, type Wish } from "../harness/client.ts";
import { call, type Delta, type Gateway, say, seenBy } from "../harness/house.ts";

export interface Step {
  /** The request's messages or items. */
  readonly send: readonly string[];
  /** What the model says to it; at first `assistant: re: ` and the last words sent. */
  readonly answer?: readonly string[];
  /** What the model is shown; absent: that does not matter here. */
  readonly sees?: readonly string[];
  /** `x-portico-history`. */
  readonly told?: string;
  /** The code of the error instead of an answer. */
  readonly fails?: string;
  /** The step whose response this request names, counted from 0: responses only. */
  readonly names?: number;
  readonly on?: Endpoint;
  readonly more?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Row {
  readonly name: string;
  readonly steps: readonly Step[];
}

/** Plays a row under a hint of its own; each step is judged as it comes. */
export async function play(gateway: Gateway, { name, steps }: Row, on: Endpoint, hint: Hint = byUser): Promise<void> {
  const heard: Heard[] = [];
  const { model } = gateway;
  for (const [index, step] of steps.entries()) {
    const where = `step ${index} of ${name}`;
    const answer = step.answer ?? [`assistant: re: ${wordsOf(step.send.at(-1) ?? "")}`];
    model.script = [toDeltas(answer)];
    const asked = model.turns.length;
    const one = await tell(gateway.address, toWish(step, step.on ?? on, hint(`${name} on ${on}`), heard));
    heard.push(one);
    if (step.fails !== undefined) {
      assert.deepEqual([one.error?.["code"], model.turns.length], [step.fails, asked], `${where}: ${one.raw}`);
      continue;
    }
    assert.equal(one.status, 200, `${where}: ${one.raw}`);
    assert.equal(model.turns.length, asked + 1, `${where}: the model is asked once`);
    if (step.sees !== undefined) assert.deepEqual(seenBy(model.turns.at(-1)), step.sees, where);
    if (step.told !== undefined) assert.equal(one.headers.get("x-portico-history"), step.told, where);
  }
}

/** How a request names its session. */
export type Hint = (value: string) => Pick<Wish, "headers" | "more">;

export const byUser: Hint = (user) => ({ more: { user } });

export const byHeader =
  (name: string): Hint =>
  (value) => ({ headers: { [name]: value } });

function toWish(step: Step, on: Endpoint, hint: ReturnType<Hint>, heard: readonly Heard[]): Wish {
  const previous = step.names === undefined ? {} : { previous_response_id: heard[step.names]?.id };
  return {
    on,
    say: toWire(on, step.send),
    headers: { ...hint.headers, ...step.headers },
    more: { ...hint.more, ...previous, ...step.more },
  };
}

/** The words behind a line's name. */
export function wordsOf(line: string): string {
  return line.slice(line.indexOf(": ") + 2);
}

/** The name of who speaks, or `call` or `output`. */
export function kindOf(line: string): string {
  return line.slice(0, line.search(/[ :]/));
}

/** The id of a call or an output. */
export function callIdOf(line: string): string {
  return /^(?:call|output) ([^:]+):/.exec(line)?.[1] ?? "";
}

export function toDeltas(lines: readonly string[]): Delta[] {
  return lines.flatMap((line, index) => {
    const words = wordsOf(line);
    if (kindOf(line) !== "call") return say(words);
    const [name = "", written = "{}"] = words.split(" ");
    return call(callIdOf(line), name, written, index);
  });
}

/** Messages or items as clients write them: a chat client has an answer's text and calls in one message. */
export function toWire(on: Endpoint, lines: readonly string[]): readonly unknown[] {
  return on === "chat" ? toMessages(lines) : lines.map(toItem);
}

function toMessages(lines: readonly string[]): readonly unknown[] {
  const messages: { role: string; content: string | null; tool_calls?: unknown[]; tool_call_id?: string }[] = [];
  for (const line of lines) {
    const words = wordsOf(line);
    const last = messages.at(-1);
    switch (kindOf(line)) {
      case "call": {
        const [name, written = "{}"] = words.split(" ");
        const made = { id: callIdOf(line), type: "function", function: { name, arguments: written } };
        if (last?.role === "assistant") (last.tool_calls ??= []).push(made);
        else messages.push({ role: "assistant", content: null, tool_calls: [made] });
        break;
      }
      case "output":
        messages.push({ role: "tool", tool_call_id: callIdOf(line), content: words });
        break;
      default:
        messages.push({ role: kindOf(line), content: words });
    }
  }
  return messages;
}

function toItem(line: string): unknown {
  const words = wordsOf(line);
  const [name, written = "{}"] = words.split(" ");
  const callId = callIdOf(line);
  switch (kindOf(line)) {
    case "call":
      return { type: "function_call", call_id: callId, name, arguments: written };
    case "output":
      return { type: "function_call_output", call_id: callId, output: words };
    default:
      return { role: kindOf(line), content: words };
  }
}
