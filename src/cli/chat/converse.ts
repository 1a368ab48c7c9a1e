/** A conversation, message by message: typed or piped input goes in, the answer streams out. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { callerLeft, messageOf } from "../../core/errors.ts";
import type { Event } from "../../core/event.ts";
import { textOf } from "../../core/item.ts";
import type { Answer } from "../../core/turn.ts";
import { toPlain } from "../sessions/text.ts";
import type { ChatBackend, Said } from "./backend.ts";
import { readPiped, readTyped } from "./messages.ts";

export interface Conversation {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** A person is there, who is prompted and may stop an answer. */
  readonly isInteractive: boolean;
  /** A line beside the answers. */
  complain(line: string): void;
  readonly session: string;
  readonly model: string;
  /** Every question carries the history, for a gateway that would not know it by the session. */
  readonly showsHistory: boolean;
  /** Ends the conversation at once. */
  readonly stopped: AbortSignal;
}

/** Runs until the input ends or the user quits; returns how many answers failed. */
export async function converse(backend: ChatBackend, conversation: Conversation): Promise<number> {
  const { input, output, isInteractive, stopped, complain, model } = conversation;
  if (stopped.aborted) return 0;
  const writer = createAnswerWriter(output);
  const messages = isInteractive ? readTyped(input, output, interrupt) : readPiped(input);
  let answering: AbortController | undefined;
  let session = conversation.session;
  let said: readonly Said[] = [];
  let failures = 0;

  function stop(): void {
    answering?.abort(callerLeft());
    messages.close();
  }
  stopped.addEventListener("abort", stop, { once: true });

  /** Ctrl-C takes back what has not been answered; if there is nothing, it quits. */
  function interrupt(): void {
    const isAny = messages.drop();
    if (answering !== undefined) answering.abort(callerLeft());
    else if (!isAny) messages.close();
    else messages.prompt();
  }

  async function answer(content: string): Promise<void> {
    const { signal } = (answering = new AbortController());
    const asked: readonly Said[] = [...(conversation.showsHistory ? said : []), { role: "user", content }];
    try {
      const ended = await printAnswer(backend.ask({ messages: asked, session, model }, signal), writer);
      if (ended?.error !== undefined) throw ended.error;
      if (ended?.status === "incomplete") complain(`[the answer was cut short: ${ended.finish}]`);
      said = [...asked, { role: "assistant", content: ended === undefined ? "" : spoken(ended) }];
    } catch (thrown) {
      await writer.endLine();
      if (!signal.aborted) failures++;
      complain(signal.aborted ? "[stopped]" : toLine(thrown));
    } finally {
      answering = undefined;
    }
  }

  messages.prompt();
  for await (const message of messages) {
    const command = message.trim();
    if (stopped.aborted || command === "/exit") break;
    if (command === "/new") {
      session = `${conversation.session}-${randomBytes(4).toString("hex")}`;
      said = [];
      complain(`A new conversation: session ${session}`);
    } else if (command === "/help") complain(help);
    // Sent as it is: indentation has a meaning in code.
    else if (command !== "") await answer(message);
    messages.prompt();
  }
  // The shell's next output begins on its own line.
  if (!messages.isOpen) output.write("\n");
  messages.close();
  stopped.removeEventListener("abort", stop);
  return failures;
}

const help =
  "Enter sends a message; what is pasted is one, and Alt-Enter begins another line of it. /new begins another conversation, /exit or Ctrl-D quits, Ctrl-C stops an answer or clears what was typed.";

/** Writes an answer as it comes; returns how it ended. */
async function printAnswer(events: AsyncIterable<readonly Event[]>, writer: AnswerWriter): Promise<Answer | undefined> {
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
  await writer.endLine();
  return answer;
}

interface AnswerWriter {
  write(text: string): Promise<void>;
  /** Does nothing at the start of a line. */
  endLine(): Promise<void>;
}

/** Waits for a reader that is slower than the model. */
function createAnswerWriter(output: NodeJS.WritableStream): AnswerWriter {
  let isFresh = true;
  async function write(text: string): Promise<void> {
    if (text === "") return;
    isFresh = text.endsWith("\n");
    if (!output.write(text)) await once(output, "drain");
  }
  return { write, endLine: async () => (isFresh ? undefined : write("\n")) };
}

function spoken({ items }: Answer): string {
  return items.flatMap((item) => (item.type === "message" ? [textOf(item.content)] : [])).join("\n");
}

function toLine(thrown: unknown): string {
  return toPlain(messageOf(thrown).replaceAll(/\s+/g, " "));
}
