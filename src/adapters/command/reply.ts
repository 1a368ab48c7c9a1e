/** Reads a program's standard output, as plain text or as JSON Lines, into deltas. */
import type { Delta } from "../../core/delta.ts";
import { GatewayError } from "../../core/errors.ts";
import { createGathering } from "../gathering.ts";
import { createLineReader, isSpoken } from "./line.ts";

type OutputForm = "text" | "jsonl";

/** Adds the deltas of one read, or of the end of the output; throws what follows them and is not part of an answer. */
export type ReadReply = (bytes: Buffer | undefined, deltas: Delta[]) => void;

/** With `auto` the first line decides: a delta begins JSON Lines, anything else is the answer itself. */
export function createReplyReader(output: OutputForm | "auto"): ReadReply {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let parse = output === "auto" ? undefined : parsers[output]();
  let undecided = "";

  /** A replacement character would be an invented one; a character cut in two waits for its other half. */
  function decode(bytes: Buffer | undefined): string {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined });
    } catch (cause) {
      throw new GatewayError("adapter_protocol", "The adapter's program wrote bytes that are not UTF-8.", { cause });
    }
  }

  return (bytes, deltas) => {
    const last = bytes === undefined;
    undecided += decode(bytes);
    parse ??= chooseParser(undecided, last);
    if (parse === undefined) return;
    // The last line may lack its break; to a text the break adds nothing.
    parse(last ? `${undecided}\n` : undecided, deltas);
    undecided = "";
  };
}

type Parse = (text: string, deltas: Delta[]) => void;

const parsers: Readonly<Record<OutputForm, () => Parse>> = { text: createTextParser, jsonl: createLinesParser };

/** A first line longer than this is no delta. */
const maxFirstLine = 1024 * 1024;

function chooseParser(text: string, last: boolean): Parse | undefined {
  const start = text.trimStart();
  const end = start.indexOf("\n");
  const open = !last && end === -1 && start.length < maxFirstLine;
  if (start === "" || (start.startsWith("{") && open)) return last ? createTextParser() : undefined;
  return isSpoken(end === -1 ? start : start.slice(0, end)) ? createLinesParser() : createTextParser();
}

/** Text is passed on as it comes; trailing line breaks belong to the terminal, not to the answer. */
function createTextParser(): Parse {
  let breaks = "";
  return (text, deltas) => {
    let end = text.length;
    while (end > 0 && (text[end - 1] === "\n" || text[end - 1] === "\r")) end -= 1;
    if (end > 0) deltas.push({ type: "text", text: breaks + text.slice(0, end) });
    breaks = (end > 0 ? "" : breaks) + text.slice(end);
  };
}

function createLinesParser(): Parse {
  const read = createLineReader();
  /** The start of an incomplete line: a program may write it letter by letter. */
  const begun = createGathering();
  return (text, deltas) => {
    let from = 0;
    for (let to = text.indexOf("\n"); to !== -1; to = text.indexOf("\n", from)) {
      const line = begun.take().toString() + text.slice(from, to);
      from = to + 1;
      if (line.trim() !== "") read(line, deltas);
    }
    if (from < text.length) begun.add(Buffer.from(text.slice(from)));
  };
}
