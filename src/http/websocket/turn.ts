/** One turn over a WebSocket: a create frame in, its events out, or one error that leaves the connection usable. */
import { type GatewayError, toGatewayError, toWireError } from "../../core/errors.ts";
import type { Event } from "../../core/event.ts";
import type { Heading } from "../../core/gateway.ts";
import { isInstruction, type Item } from "../../core/item.ts";
import type { Answer, Ask } from "../../core/turn.ts";
import { missing, readBody, readBoolean, readChoice, unsupported } from "../../wires/fields.ts";
import { front } from "../../wires/responses/index.ts";
import { parseJson } from "../body.ts";
import { type Call, type CallObserver, noteSaid } from "../call.ts";
import { toCaller } from "../caller.ts";
import { checkAsk } from "../models.ts";
import { toCircumstances, type TurnParts } from "../turn.ts";

export interface SocketParts extends TurnParts {
  readonly newKey: () => string;
  readonly observer: CallObserver;
}

export interface Running {
  readonly turn: Call;
  /** Ends the response where it is. */
  readonly interrupt: AbortController;
}

/** Sends frames in one write. A promise says that the client reads too slowly, and resolves when it has caught up. */
export type WriteFrames = (frames: readonly string[]) => Promise<void> | undefined;

interface Around {
  readonly write: WriteFrames;
  readonly memory: ReturnType<typeof createMemory>;
  readonly parts: SocketParts;
}

/** Never throws. */
export async function answerFrame(text: string, { turn, interrupt }: Running, { write, memory, parts }: Around) {
  const { gateway, sealOf, newKey, now } = parts;
  const { record } = turn;
  let isLocal = false;
  try {
    turn.readmit();
    const { body, generates } = readCreate(parseJson(text));
    const { ask: given, voice } = front.readRequest(body, toCircumstances(turn, sealOf));
    checkAsk(turn.token, given);
    const ask = memory.complete(given);
    isLocal = ask !== given;
    turn.share.enter(false);
    let speak: ((events: readonly Event[]) => string) | undefined;
    const begin = (heading: Heading): void => {
      record.heading = heading;
      record.key = heading.key;
      record.firstMs = now() - record.startedAt;
      // Clients take an `error` for the end of a response, and the `response.failed` behind it for that of the next.
      speak = voice.stream(heading, false);
    };
    const tell = (events: readonly Event[]) => write(toFrames(speak?.(events) ?? ""));

    if (generates) {
      const hinted = toCaller(turn, given);
      // A name wins over a hint, though only the connection knows it.
      const named = isLocal ? undefined : hinted.hint;
      const said = await gateway.answer(ask, { ...hinted, interrupt: interrupt.signal, hint: named }, { begin, tell });
      if (!("answer" in said)) throw new Error("A response was only promised.");
      noteSaid(record, said);
      const { heading, answer } = said;
      record.failure = answer.error;
      record.status = answer.error?.code === "client_closed" ? answer.error.status : 200;
      if (answer.error !== undefined) return;
      if (ask.keep === "no") memory.keep(heading.key, ask, answer.items);
      else memory.forget();
    } else {
      const key = newKey();
      const told = { session: undefined, told: "stateless", contextItems: 0, leftOutItems: 0, remarks: [] } as const;
      begin({ key, createdAt: now(), model: ask.model, ...told });
      record.status = 200;
      memory.keep(key, ask, []);
      await tell([{ type: "turn-start" }, { type: "turn-end", answer: nothing(now()) }]);
    }
  } catch (thrown) {
    record.failure = toGatewayError(thrown);
    await write([toErrorFrame(record.failure)]);
  } finally {
    // A response that could not be continued is forgotten: its client sends everything anew.
    if (record.failure !== undefined && isLocal) memory.forget();
    turn.leave();
    turn.close();
  }
}

interface Remembered extends Pick<Ask, "previous" | "conversation" | "items"> {
  readonly id: string;
}

/**
 * What only a connection remembers: its last response that is not stored, or the request it has prepared. Nothing that
 * is longer than a body: a request that showed it all would be refused, too.
 */
export function createMemory(maxLength: number) {
  let last: Remembered | undefined;

  return {
    /** A request that continues what is remembered here, with that in front of it; any other as it is. */
    complete(ask: Ask): Ask {
      if (last === undefined || ask.previous !== last.id) return ask;
      const { previous, conversation, items } = last;
      return { ...ask, previous, conversation, items: [...items, ...ask.items] };
    },
    /** Remembers a completed request and its answer, under this key. */
    keep(key: string, { previous, conversation, items }: Ask, answer: readonly Item[]): void {
      const at = answer.findLastIndex(({ type }) => type === "compaction");
      // A compaction stands for all that was said before it.
      const summed = { conversation, items: [...items.filter(isInstruction), ...answer.slice(at)] };
      const said = at >= 0 ? summed : { previous, conversation, items: [...items, ...answer] };
      last = JSON.stringify(said.items).length > maxLength ? undefined : { id: `resp_${key}`, ...said };
    },
    forget(): void {
      last = undefined;
    },
  };
}

/** The body that the same request would have over HTTP. Its answer is always a stream, whatever `stream` says. */
function readCreate(value: unknown) {
  const fields = readBody(value);
  if (readChoice(fields, "type", ["response.create"]) === undefined) missing("type");
  if (readBoolean(fields, "background") === true)
    unsupported("background", "Request background responses with POST /v1/responses.");
  const generates = readBoolean(fields, "generate") ?? true;
  const { type: _type, generate: _generate, ...body } = fields.values;
  // If nothing is generated yet, and a later request continues it, the input may be missing.
  const input = generates ? {} : { input: body["input"] ?? [] };
  return { body: { ...body, ...input, stream: true }, generates };
}

/** The events of a voice's text, which is whole server-sent messages; each is JSON text. */
function toFrames(text: string): readonly string[] {
  const events = text.split("\n\n").map((message) => message.slice(message.indexOf(mark) + mark.length));
  return events.filter((event) => event !== "" && event !== "[DONE]");
}

const mark = "data: ";

/** A failure outside of any response. Readers that validate events recognise one by its number. */
export function toErrorFrame(error: GatewayError): string {
  return JSON.stringify({ type: "error", status: error.status, error: toWireError(error), sequence_number: 0 });
}

/** Some clients need the numbers of an answer that has none. */
function nothing(endedAt: number): Answer {
  const usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };
  return { status: "completed", finish: "stop", items: [], usage, notes: {}, endedAt };
}
