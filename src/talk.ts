/** Turns from outside HTTP: a channel's messages run in the sessions that all clients share. */
import { GatewayError, toGatewayError } from "./core/errors.ts";
import type { Event } from "./core/event.ts";
import type { Gateway, Heading } from "./core/gateway.ts";
import type { Content, Part } from "./core/item.ts";
import type { RequestRecord } from "./observe/index.ts";
import * as read from "./wires/fields.ts";

export interface Message {
  /** Text, or parts with images and files. */
  readonly content: Content;
  /** The conversation's name, which clients over HTTP send as X-Session-Id; without it nothing is remembered. */
  readonly session?: string | undefined;
  /** The session's owner; by default that of tokens without a name. */
  readonly owner?: string | undefined;
  /** By default the configured one, or the first chat model that adapters list. */
  readonly model?: string | undefined;
  /** Instructions to the model for this turn, placed first. */
  readonly instructions?: string | undefined;
  /** Cancels the turn. */
  readonly signal?: AbortSignal | undefined;
}

/** An answer in pieces, to be read once; a reader that stops cancels the turn. */
export interface Talk extends AsyncIterable<string> {
  readonly about: About;
  /** The whole answer at its end. */
  text(): Promise<string>;
}

/** What is known of an answer before its first word. */
interface About {
  readonly id: string;
  readonly model: string;
  readonly session: string | undefined;
  readonly history: Heading["told"];
  readonly contextItems: number;
}

interface ChannelParts {
  readonly gateway: Pick<Gateway, "answer">;
  /** For messages without one. */
  readonly model: () => Promise<string>;
  /** Told of every turn when it is over, read or not. */
  readonly ended: (record: RequestRecord) => void;
}

export interface Channel {
  talk(message: Message): Promise<Talk>;
  /** Lets running turns end, cancels what takes longer, and begins no new ones. */
  close(drainMs: number): Promise<void>;
}

export function createChannel({ gateway, model, ended }: ChannelParts): Channel {
  const running = new Map<AbortController, Promise<void>>();
  let isClosing = false;

  async function talk(message: Message): Promise<Talk> {
    if (isClosing) throw draining();
    const { owner = "default", session, content, instructions, signal, ...asked } = readMessage(message);
    const control = new AbortController();
    const leave = (): void => control.abort(new GatewayError("cancelled", "The turn was cancelled."));
    signal?.addEventListener("abort", leave);
    if (signal?.aborted === true) leave();
    const since = performance.now();
    const queue = createQueue(leave);
    control.signal.addEventListener("abort", () => queue.end(toGatewayError(control.signal.reason)));
    const named = asked.model ?? (await model());
    const begun = Promise.withResolvers<Heading>();
    const ask = {
      model: named,
      items: [{ type: "message", role: "user", content }],
      itemsParam: "message.content",
      settings: { tools: [], instructions },
      stream: true,
      keep: "in-session",
    } as const;
    const hint = session === undefined || session === "" ? undefined : `header:x-session-id:${session}`;

    async function run(): Promise<void> {
      let record: Partial<RequestRecord> = {};
      try {
        const caller = { owner, hint, shows: false, isByHeader: hint !== undefined, signal: control.signal };
        const said = await gateway.answer(ask, caller, { begin: begun.resolve, tell: queue.put });
        const answer = "answer" in said ? said.answer : undefined;
        record = { heading: said.heading, key: said.heading.key, answer };
        queue.end(answer?.error);
      } catch (thrown) {
        const failure = toGatewayError(control.signal.aborted ? control.signal.reason : thrown);
        begun.reject(failure);
        queue.end(failure);
        record = { failure };
      } finally {
        signal?.removeEventListener("abort", leave);
        running.delete(control);
        ended({ kind: "talk", owner, ms: performance.now() - since, ...record });
      }
    }
    running.set(control, run());

    const { key, session: known, told, contextItems } = await begun.promise;
    return {
      about: { id: `resp_${key}`, model: named, session: known, history: told, contextItems },
      [Symbol.asyncIterator]: queue.read,
      text: async () => (await Array.fromAsync({ [Symbol.asyncIterator]: queue.read })).join(""),
    };
  }

  return {
    talk,
    async close(drainMs) {
      isClosing = true;
      const overdue = setTimeout(() => {
        for (const control of running.keys()) control.abort(draining());
      }, drainMs);
      await Promise.all(running.values());
      clearTimeout(overdue);
    },
  };
}

function draining(): GatewayError {
  const message = "The gateway is shutting down. Send the message again.";
  return new GatewayError("draining", message, { retryAfterSeconds: 5 });
}

/** Pieces on their way to their reader, who may be slower: an answer is small enough to wait here. */
function createQueue(leave: () => void) {
  const pieces: string[] = [];
  let over: { readonly failure: GatewayError | undefined } | undefined;
  let wake: (() => void) | undefined;
  let isRead = false;
  return {
    put(events: readonly Event[]): undefined {
      for (const event of events) {
        if (event.type === "item-delta" && (event.kind === "text" || event.kind === "refusal")) pieces.push(event.text);
      }
      wake?.();
    },
    end(failure: GatewayError | undefined): void {
      over ??= { failure };
      wake?.();
    },
    /** A second reader would get nothing, and think it the answer. */
    read(): AsyncIterator<string, undefined> {
      if (isRead) throw new TypeError("An answer can be read only once, as pieces or as one text.");
      isRead = true;
      return {
        async next() {
          for (;;) {
            const value = pieces.shift();
            if (value !== undefined) return { done: false, value };
            if (over?.failure !== undefined) throw over.failure;
            if (over !== undefined) return { done: true, value: undefined };
            await new Promise<void>((resolve) => (wake = resolve));
          }
        },
        async return() {
          if (over === undefined) leave();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** As carefully as a request's body, because not every program is type-checked; an error names the wrong field. */
function readMessage(message: unknown): Message {
  const fields = read.toFields(message, "message");
  const { signal } = fields.values;
  return {
    content: read.readContent(fields, "content", readPart) ?? read.missing("message.content"),
    session: read.readString(fields, "session"),
    owner: read.readString(fields, "owner"),
    model: read.isPresent(fields, "model") ? read.requireName(fields, "model") : undefined,
    instructions: read.readString(fields, "instructions"),
    signal: read.isPresent(fields, "signal") ? requireSignal(signal) : undefined,
  };
}

/** Some programs use one that is not the platform's own. */
function requireSignal(value: unknown): AbortSignal {
  if (read.isObject(value) && typeof value["addEventListener"] === "function") return value as unknown as AbortSignal;
  throw read.wrongType("message.signal", "an AbortSignal", value);
}

/** What each kind of part says, or where it is: one of these texts. */
const sources: Readonly<Record<Part["type"], readonly [string, ...string[]]>> = {
  text: ["text"],
  refusal: ["text"],
  image: ["url", "fileId"],
  audio: ["data"],
  file: ["fileId", "data", "url"],
  other: ["type"],
};

function readPart(part: read.Fields): Part {
  const type = read.requireString(part, "type");
  if (!Object.hasOwn(sources, type)) read.notAllowed(read.pathOf(part, "type"), type, Object.keys(sources));
  const keys = sources[type as Part["type"]];
  const texts = keys.map((key) => read.readString(part, key));
  if (texts.every((text) => text === undefined)) read.missing(read.pathOf(part, keys[0]));
  return part.values as unknown as Part;
}
