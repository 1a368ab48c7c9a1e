/** Where messages come from: lines of a pipe, or a terminal, where a message may be pasted and have several lines. */
import { createInterface } from "node:readline";
import { toPlain } from "../sessions/text.ts";

export interface Messages extends AsyncIterable<string> {
  /** Asks for the next message. */
  prompt(): void;
  /** Forgets all that was entered and is not yet taken; false if nothing was. */
  drop(): boolean;
  /** False once the input has ended. */
  readonly isOpen: boolean;
  close(): void;
}

/** Tells a terminal to mark what is pasted, or to stop that. */
export const pasteMarks = { on: "\x1b[?2004h", off: "\x1b[?2004l" } as const;

/** Every line is a message. */
export function readPiped(input: NodeJS.ReadableStream): Messages {
  const lines = createInterface({ input });
  return {
    prompt() {},
    drop: () => false,
    isOpen: true,
    close: () => lines.close(),
    [Symbol.asyncIterator]: () => lines[Symbol.asyncIterator](),
  };
}

const usualPrompt = "> ";
const innerPrompt = "... ";

/** Where messages are typed and answers are shown. */
export interface TerminalStreams {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** The terminal knows no escape sequences: nothing can be erased there, and no paste is marked. */
  readonly isSimple?: boolean;
}

/** Enter completes a message; a line that ends within a paste, or with Alt-Enter, is a part of it. */
export function readTyped({ input, output, isSimple = false }: TerminalStreams, interrupted: () => void): Messages {
  const lines = createInterface({ input, output, terminal: true, prompt: usualPrompt });
  const complete: string[] = [];
  let begun: string[] = [];
  let isInner = false;
  let isPrompting = false;
  let isOpen = true;
  let wake: (() => void) | undefined;

  function press(_text: unknown, { name, meta }: Key): void {
    if (name === "paste-start" || name === "paste-end") isInner = name === "paste-start";
    // At a simple terminal readline has taken it for Enter.
    if (name !== "return" || meta !== true || isSimple) return;
    isInner = true;
    lines.write(null, { name: "return" });
    isInner = false;
  }
  input.on("keypress", press);
  lines.on("line", (line) => {
    begun.push(line);
    if (isInner) {
      lines.setPrompt(innerPrompt);
      if (isPrompting) lines.prompt();
      return;
    }
    complete.push(begun.join("\n"));
    restart();
    isPrompting = false;
    wake?.();
  });
  lines.on("SIGINT", interrupted);
  lines.on("SIGCONT", () => {
    // The shell has changed it, and readline has paused.
    if (!isSimple) output.write(pasteMarks.on);
    lines.resume();
  });
  lines.once("close", () => {
    isOpen = false;
    // Keys that came with the one that closed it.
    input.off("keypress", press);
    wake?.();
  });

  function restart(): void {
    begun = [];
    lines.setPrompt(usualPrompt);
  }

  async function* take(): AsyncGenerator<string> {
    for (;;) {
      const message = complete.shift();
      if (message !== undefined) yield message;
      else if (!isOpen) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  }

  return {
    prompt() {
      const [next] = complete;
      // It was echoed somewhere in the answer before.
      if (next !== undefined) output.write(`${usualPrompt}${toPlain(next)}\n`);
      else if (isOpen) {
        isPrompting = true;
        lines.prompt(true);
      }
    },
    drop() {
      const isAny = complete.length + begun.length > 0 || lines.line !== "";
      complete.length = 0;
      restart();
      // Only the next prompt takes it off the screen: readline would erase it at once, and maybe a part of the answer.
      Object.assign(lines, { line: "", cursor: 0 });
      if (isAny && isPrompting && isSimple) output.write("\n");
      return isAny;
    },
    get isOpen() {
      return isOpen;
    },
    close: () => lines.close(),
    [Symbol.asyncIterator]: take,
  };
}

interface Key {
  readonly name?: string;
  readonly meta?: boolean;
}
