/** What a request shows of its past, read in one pass: a chain of digests over the talk, and the outputs behind it. */
import { isInstruction, type Item, textOf, type ToolOutput } from "./item.ts";

export type Hash = (text: string) => string;

/** The end of an answer that somebody answered. */
export interface Shown {
  /** Of all that was said up to here. */
  readonly digest: string;
  /** The first item behind it. */
  readonly behind: number;
  /** Of all that was said up to the question of this answer. */
  question(): string;
}

export interface History {
  /** It shows a word of the model that somebody answered. Without any the request has only new items. */
  readonly isShown: boolean;
  /** The first item behind the model's last answered word. */
  readonly fresh: number;
  /** The outputs among the fresh items; the last one decides whose call is answered. */
  readonly outputs: readonly ToolOutput[];
  /** The outputs behind the last words of a person: those of the tool loop that runs. */
  readonly running: readonly ToolOutput[];
  /** Outputs, anywhere, whose call the request does not show. */
  readonly orphans: ReadonlySet<Item>;
  /** The last words of a person; -1: there are none. */
  readonly lastWords: number;
  /** The talk in digests, made when it is first asked for: where no session is there is nothing to compare. */
  talk(): Talk;
}

interface Talk {
  /** Deepest first. */
  readonly shown: readonly Shown[];
  /** The question before a last word of the model that nobody answered: a prefill, unless it was asked here before. */
  readonly prefilled: (() => string) | undefined;
}

export function readHistory(items: readonly Item[], hash: Hash): History {
  const calls = new Set<string>();
  let orphans = nothing;
  let lastWords = -1;
  let lastSide: Side = "caller";
  let fresh = 0;
  const places: number[] = [];
  for (let index = 0; index < items.length; index++) {
    const item = items[index] as Item;
    if (item.type === "tool-call") calls.add(item.callId);
    else if (item.type === "tool-output") {
      places.push(index);
      if (!calls.has(item.callId)) (orphans = orphans === nothing ? new Set() : orphans).add(item);
    } else if (item.type === "message" && item.role === "user") lastWords = index;
    const side: Side = sideOf(item) ?? lastSide;
    if (side === "caller" && lastSide === "model") fresh = index;
    lastSide = side;
  }
  const outputsFrom = (from: number): readonly ToolOutput[] =>
    places.length === 0 ? none : places.filter((index) => index >= from).map((index) => items[index] as ToolOutput);
  let talk: Talk | undefined;
  return {
    isShown: fresh > 0,
    fresh,
    outputs: outputsFrom(fresh),
    running: outputsFrom(lastWords),
    orphans,
    lastWords,
    talk: () => (talk ??= readTalk(items, hash)),
  };
}

const none: readonly ToolOutput[] = [];
const nothing: Set<Item> = new Set();

function readTalk(items: readonly Item[], hash: Hash): Talk {
  const chain = createChain("", hash);
  const shown: Shown[] = [];
  for (let index = 0; index < items.length; index++) {
    const ended = chain.add(items[index] as Item);
    if (ended !== undefined) shown.push({ ...ended, behind: index });
  }
  return { shown: shown.toReversed(), prefilled: chain.asked() };
}

/** The two marks of a turn: all that was said up to its question, and up to the end of its answer. */
export interface Marks {
  readonly question: string;
  readonly digest: string;
}

export function markTurn(before: string, said: readonly Item[], answered: readonly Item[], hash: Hash): Marks {
  const chain = createChain(before, hash);
  for (const item of said) chain.add(item);
  for (const item of answered) chain.add(item);
  return chain.end();
}

type Side = "caller" | "model";

/**
 * Links each exchange to all that was said before. How one side's words are cut into messages and parts does not count,
 * nor do ids, reasoning and instructions. A call counts by its id alone: clients write its arguments anew.
 */
function createChain(before: string, hash: Hash) {
  let digest = before;
  let side: Side = "caller";
  let asked = "";
  let answer = "";
  let called = "";

  function close(): Omit<Shown, "behind"> {
    const [known, question] = [digest, asked];
    digest = hash(`${known}\u0001${question}\u0002${answer}${called}`);
    asked = answer = called = "";
    side = "caller";
    return { digest, question: () => hash(`${known}\u0001${question}`) };
  }

  return {
    /** Tells the end of an answer when the caller begins to answer it. */
    add(item: Item): Omit<Shown, "behind"> | undefined {
      const speaker = sideOf(item);
      if (speaker === undefined) return undefined;
      if (speaker === "model") {
        side = "model";
        // A chat message does not tell whether its text came before its calls.
        if (item.type === "tool-call") called += wordsOf(item);
        else answer += wordsOf(item);
        return undefined;
      }
      const ended = side === "model" ? close() : undefined;
      asked += wordsOf(item);
      return ended;
    },
    asked(): (() => string) | undefined {
      const [known, question] = [digest, asked];
      return side === "model" && question !== "" ? () => hash(`${known}\u0001${question}`) : undefined;
    },
    /** A turn always ends with a word of the model, be it an empty one. */
    end(): Marks {
      const { question, digest } = close();
      return { question: question(), digest };
    },
  };
}

function sideOf(item: Item): Side | undefined {
  switch (item.type) {
    case "message":
      return isInstruction(item) ? undefined : item.role === "assistant" ? "model" : "caller";
    case "tool-call":
      return "model";
    case "tool-output":
      return "caller";
    default:
      return undefined;
  }
}

function wordsOf(item: Item): string {
  switch (item.type) {
    case "message":
      if (typeof item.content === "string") return bare(item.content);
      return bare(item.content.map((part) => ("text" in part ? part.text : JSON.stringify(part))).join(""));
    case "tool-call":
      return `\u0003${item.callId}`;
    case "tool-output":
      return `\u0004${item.callId}\u0005${bare(textOf(item.output))}`;
    default:
      return "";
  }
}

/** The kind of line end and blanks at the ends of a text do not count. */
function bare(text: string): string {
  const trimmed = text.trim();
  return trimmed.includes("\r") ? trimmed.replaceAll("\r\n", "\n") : trimmed;
}
