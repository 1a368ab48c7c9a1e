/** Reads a program's standard output, as plain text or as JSON Lines, into deltas. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import { createLineReader, isSaid } from "./line.ts";

/** Adds the deltas of one read, or (undefined) of the end of the output; throws what is no part of an answer. */
type ReadReply = (bytes: Buffer | undefined, deltas: Delta[]) => void;
type Take = (text: string, deltas: Delta[]) => void;

/** With `auto` the first line decides: a delta begins JSON Lines, anything else is the answer itself. */
export function createReplyReader(output: "auto" | "text" | "jsonl"): ReadReply {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let take = output === "auto" ? undefined : output === "text" ? createTextForm() : createLinesForm();
  let undecided = "";

  /** A replacement character would be an invented one; one that is cut in two waits for its other half. */
  function decode(bytes: Buffer | undefined): string {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined });
    } catch (cause) {
      throw new GatewayError("adapter_protocol", "The adapter's program wrote bytes that are not UTF-8.", { cause });
    }
  }

  return (bytes, deltas) => {
    const isLast = bytes === undefined;
    const text = undecided + decode(bytes);
    undecided = "";
    take ??= decide(text, isLast);
    if (take === undefined) undecided = text;
    // The last line may lack its break; to a text the break adds nothing.
    else take(isLast ? `${text}\n` : text, deltas);
  };
}

/** A longer first line is no delta. */
const maxFirstLine = 1024 * 1024;

function decide(text: string, isLast: boolean): Take | undefined {
  const [line = "", ...more] = text.trimStart().split("\n", 2);
  const isWhole = isLast || more.length > 0 || line.length > maxFirstLine;
  if (!isWhole && (line === "" || line.startsWith("{"))) return undefined;
  return isSaid(line) ? createLinesForm() : createTextForm();
}

/** As it comes; trailing line breaks belong to the terminal, not to the answer. */
function createTextForm(): Take {
  let breaks = "";
  return (text, deltas) => {
    let end = text.length;
    while (end > 0 && (text[end - 1] === "\n" || text[end - 1] === "\r")) end -= 1;
    if (end > 0) deltas.push({ type: "text", text: breaks + text.slice(0, end) });
    breaks = (end > 0 ? "" : breaks) + text.slice(end);
  };
}

function createLinesForm(): Take {
  const read = createLineReader();
  /** Of an incomplete line: a program may write it letter by letter. */
  let pieces: string[] = [];
  return (text, deltas) => {
    const [rest = "", ...ends] = text.split("\n").toReversed();
    for (const piece of ends.toReversed()) {
      const line = pieces.join("") + piece;
      pieces = [];
      if (line.trim() !== "") read(line, deltas);
    }
    pieces.push(rest);
  };
}
