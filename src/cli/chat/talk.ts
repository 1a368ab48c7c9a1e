/** One conversation: asks, prints the answer as it comes, and remembers what was said. */
import { once } from "node:events";
import { callerLeft, messageOf } from "../../core/errors.ts";
import type { Events } from "../../core/event.ts";
import { textOf } from "../../core/item.ts";
import type { Answer } from "../../core/turn.ts";
import { toPlain } from "../sessions/text.ts";
import type { ChatBackend, Question, Said } from "./backend.ts";

export interface TalkOptions {
  readonly output: NodeJS.WritableStream;
  /** A line beside the answers. */
  complain(line: string): void;
  readonly session: string;
  readonly model: string;
  /** Every question carries the history, for a gateway that would not know it by the session. */
  readonly showsHistory: boolean;
  /** The output is a terminal that can erase a sign that an answer is awaited. */
  readonly showsWaiting?: boolean;
}

export interface Talk {
  /** False if it failed; an answer that was stopped did not. */
  answer(content: string): Promise<boolean>;
  /** Stops the answer and its turn; false if there is none. */
  stop(): boolean;
  /** Continues in another session, in which nothing has been said. */
  move(session: string): void;
}

export function createTalk(backend: ChatBackend, options: TalkOptions): Talk {
  const { output, complain, model } = options;
  const writer = createAnswerWriter(output);
  let answering: AbortController | undefined;
  let { session, showsHistory } = options;
  let said: readonly Said[] = [];
  /** The id of the session where that was said. */
  let saidIn: string | undefined;

  /** Asks again with what was said here, if the gateway does not continue it by itself. */
  async function ask(content: string, signal: AbortSignal): Promise<Events> {
    const question = (): Question => {
      const messages: readonly Said[] = [...(showsHistory ? said : []), { role: "user", content }];
      return { messages, session, model };
    };
    const { history, sessionId, events } = await backend.ask(question(), signal);
    const isGone = sessionId !== saidIn;
    saidIn = sessionId;
    const isAlone = history === "new" || history === "stateless";
    if (!isAlone || showsHistory || said.length === 0) return events;
    await writer.end();
    if (isGone) {
      // What was deleted stays so; and a session that is begun with a history counts as one whose clients resend it.
      said = [];
      complain("[the session is gone: this begins it anew, without what was said before]");
      return events;
    }
    await events.return();
    showsHistory = true;
    complain("[the gateway does not continue this by itself: from now on, all that was said here is sent along]");
    return (await backend.ask(question(), signal)).events;
  }

  async function answer(content: string): Promise<boolean> {
    const { signal } = (answering = new AbortController());
    if (options.showsWaiting === true) writer.wait();
    try {
      const ended = await printAnswer(await ask(content, signal), writer);
      if (ended?.error !== undefined) throw ended.error;
      if (ended?.status === "incomplete") complain(`[the answer was cut short: ${ended.finish}]`);
      said = [
        ...said,
        { role: "user", content },
        { role: "assistant", content: ended === undefined ? "" : spoken(ended) },
      ];
      return true;
    } catch (thrown) {
      await writer.end();
      complain(signal.aborted ? "[stopped]" : toLine(thrown));
      return signal.aborted;
    } finally {
      answering = undefined;
    }
  }

  return {
    answer,
    stop() {
      answering?.abort(callerLeft());
      return answering !== undefined;
    },
    move(to) {
      session = to;
      showsHistory = options.showsHistory;
      said = [];
    },
  };
}

/** Writes an answer as it comes; returns how it ended. */
async function printAnswer(events: Events, writer: AnswerWriter): Promise<Answer | undefined> {
  let answer: Answer | undefined;
  for await (const batch of events) {
    for (const event of batch) {
      if (event.type === "item-start") await writer.endLine();
      else if (event.type === "item-delta" && (event.kind === "text" || event.kind === "refusal"))
        await writer.write(toPlain(event.text));
      else if (event.type === "item-end" && event.item.type === "tool-call")
        await writer.write(toPlain(`[calls ${event.item.name} ${event.item.arguments}]`.replaceAll(/\s+/g, " ")));
      else if (event.type === "turn-end") answer = event.answer;
    }
  }
  await writer.end();
  return answer;
}

interface AnswerWriter {
  write(text: string): Promise<void>;
  /** Does nothing at the start of a line. */
  endLine(): Promise<void>;
  /** Shows a sign until something is written, or the end. */
  wait(): void;
  /** Ends the answer. */
  end(): Promise<void>;
}

/** Waits for a reader that is slower than the model. */
function createAnswerWriter(output: NodeJS.WritableStream): AnswerWriter {
  let isFresh = true;
  let isWaiting = false;
  function erase(): void {
    if (isWaiting) output.write("\r\x1b[K");
    isWaiting = false;
  }
  async function write(text: string): Promise<void> {
    if (text === "") return;
    erase();
    isFresh = text.endsWith("\n");
    if (!output.write(text)) await once(output, "drain");
  }
  return {
    write,
    endLine: async () => (isFresh ? undefined : write("\n")),
    async end() {
      erase();
      await this.endLine();
    },
    wait() {
      output.write("…");
      isWaiting = true;
    },
  };
}

function spoken({ items }: Answer): string {
  return items.flatMap((item) => (item.type === "message" ? [textOf(item.content)] : [])).join("\n");
}

function toLine(thrown: unknown): string {
  return toPlain(messageOf(thrown).replaceAll(/\s+/g, " "));
}
