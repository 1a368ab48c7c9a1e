/** What a command says: lines on standard output and standard error. */

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** What cannot be said is a failure, until `outlastOutput`. */
export function watchOutput(): void {
  // There is nobody left to tell.
  process.stderr.on("error", () => {});
  process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    // A reader that has seen enough, like `head`, is no failure.
    if (code === "EPIPE") process.exit(0);
    complain(`Standard output cannot be written: ${message}`);
    process.exit(1);
  });
}

/** From now on the process survives if nothing can be printed, e.g. to a file on a full disk. */
export function outlastOutput(): void {
  process.stdout.removeAllListeners("error").on("error", () => {});
}

/** Texts come from outside: control characters are shown, not obeyed. */
export function toPlain(text: string): string {
  return text.replaceAll(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, (character) =>
    character === "\r" ? "" : `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

/** The same in one line, so that it cannot pass for a line of ours. */
export function toLine(text: string): string {
  return toPlain(text.replaceAll(/\s+/g, " "));
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
