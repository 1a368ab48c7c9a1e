/** A conversation, message by message: typed or piped input goes in, the answer streams out. */
import { randomBytes } from "node:crypto";
import type { ChatBackend } from "./backend.ts";
import { type TerminalStreams, readPiped, readTyped } from "./messages.ts";
import { createTalk, type TalkOptions } from "./talk.ts";

export interface Conversation extends TalkOptions, TerminalStreams {
  /** A person is there, who is prompted and may stop an answer. */
  readonly isInteractive: boolean;
  /** Ends the conversation at once. */
  readonly stopped: AbortSignal;
}

/** Runs until the input ends or the user quits; returns how many answers failed. */
export async function converse(backend: ChatBackend, conversation: Conversation): Promise<number> {
  const { input, output, isInteractive, stopped, complain } = conversation;
  if (stopped.aborted) return 0;
  const talk = createTalk(backend, conversation);
  const messages = isInteractive ? readTyped(conversation, interrupt) : readPiped(input);
  let failures = 0;

  function stop(): void {
    talk.stop();
    messages.close();
  }
  stopped.addEventListener("abort", stop, { once: true });

  /** Ctrl-C takes back what has not been answered; if there is nothing, it quits. */
  function interrupt(): void {
    const isAny = messages.drop();
    if (talk.stop()) return;
    if (isAny) messages.prompt();
    else messages.close();
  }

  messages.prompt();
  for await (const message of messages) {
    const command = message.trimEnd();
    if (stopped.aborted || command === "/exit") break;
    if (command === "/new") {
      const session = `${conversation.session}-${randomBytes(4).toString("hex")}`;
      talk.move(session);
      complain(`A new conversation: session ${session}`);
    } else if (command === "/help") complain(help);
    else if (looksLikeCommand.test(command)) {
      complain(`Not sent: there is no such command. ${help}`);
      failures++;
    }
    // Sent as it is: indentation has a meaning in code.
    else if (command !== "" && !(await talk.answer(message))) failures++;
    messages.prompt();
  }
  // The shell's next output begins on its own line.
  if (!messages.isOpen) output.write("\n");
  messages.close();
  stopped.removeEventListener("abort", stop);
  return failures;
}

/** Asks one question, which is never a command; returns how many answers failed. */
export async function askOnce(backend: ChatBackend, conversation: Conversation, message: string): Promise<number> {
  const { stopped } = conversation;
  if (stopped.aborted) return 0;
  const talk = createTalk(backend, conversation);
  stopped.addEventListener("abort", talk.stop, { once: true });
  return (await talk.answer(message)) ? 0 : 1;
}

/** A word after the slash: a path has another slash, and a paste several lines. */
const looksLikeCommand = /^\/[a-z]+(?: .*)?$/i;

const help =
  "Enter sends a message; what is pasted is one, and Alt-Enter begins another line of it. /new begins another conversation, /exit or Ctrl-D quits, Ctrl-C stops an answer or clears what was typed. A line that begins with a blank is never a command.";
