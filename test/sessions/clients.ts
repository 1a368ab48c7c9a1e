/** The kinds of clients that sessions serve: what each knows of its conversation, and what it sends next. */
import fc from "fast-check";
import { callIdOf, kindOf } from "./script.ts";

/**
 * `delta` sends only what is new, `stepping` too, but shows the steps of its turn while it runs tools; `resending` sends
 * its whole history, which a person edits, `windowing` the end of it; `constant` its history under a name that all share.
 */
const kinds = ["delta", "stepping", "resending", "windowing", "constant"] as const;
export type Kind = (typeof kinds)[number];

/** How the turn ends. A caller `leaves` in the middle, and `restart` closes the gateway afterwards and opens it anew. */
const fates = ["kept", "kept", "kept", "kept", "unstored", "fails before", "fails after", "leaves"] as const;
export type Fate = (typeof fates)[number] | "restart" | "crash";

export interface Step {
  readonly who: number;
  /** What a person does to the history before the next words; `fresh` begins another conversation. */
  readonly move: "say" | "edit" | "delete" | "regenerate" | "fresh";
  readonly choice: number;
  /** What becomes of the calls that wait for an output. */
  readonly tools: "answer" | "some" | "abandon" | "stray";
  readonly isCommon: boolean;
  readonly system: "none" | "same" | "other";
  readonly calls: number;
  readonly text: boolean;
  readonly fate: Fate;
  readonly isChat: boolean;
  readonly stream: boolean;
  /** Other line ends, blanks at the end, a text in parts. */
  readonly isLoose: boolean;
}

export const stepArbitrary: fc.Arbitrary<Step> = fc.record({
  who: fc.nat(3),
  move: fc.constantFrom("say", "say", "say", "edit", "delete", "regenerate", "fresh"),
  choice: fc.nat(5),
  tools: fc.constantFrom("answer", "answer", "answer", "some", "abandon", "stray"),
  isCommon: fc.boolean(),
  system: fc.constantFrom("none", "none", "same", "other"),
  calls: fc.constantFrom(0, 0, 0, 1, 2),
  text: fc.boolean(),
  // Rarely the last, which takes as long as ten turns.
  fate: fc.oneof(
    { arbitrary: fc.constantFrom(...fates), weight: 40 },
    { arbitrary: fc.constant("restart"), weight: 1 },
  ),
  isChat: fc.boolean(),
  stream: fc.boolean(),
  isLoose: fc.boolean(),
});

export const kindsArbitrary = fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 4 });

/** A request and its answer, as the client remembers them. */
interface Exchange {
  input: readonly string[];
  readonly answer: readonly string[];
}

export interface Client {
  readonly kind: Kind;
  readonly user: string;
  exchanges: Exchange[];
}

export function createClients(chosen: readonly Kind[], history: string): readonly Client[] {
  return chosen.map((kind, index) => {
    return { kind, user: `${history} ${kind === "constant" ? "app" : `${kind} ${index}`}`, exchanges: [] };
  });
}

export interface Sending {
  readonly lines: readonly string[];
  /** The client now remembers this answer to it. */
  hear(answer: readonly string[]): void;
}

/** What the client sends next; `word` makes words that nobody said before. */
export function nextSending(client: Client, step: Step, word: (kind: string) => string): Sending {
  const { kind } = client;
  const showsAll = kind !== "delta" && kind !== "stepping";
  const kept = showsAll ? change(client.exchanges, step, word) : client.exchanges;
  const isAgain = showsAll && step.move === "regenerate" && client.exchanges.length > 0;
  const input = isAgain ? client.exchanges.at(-1)!.input : makeInput(kept, step, word);
  const hasOutputs = input.some((line) => kindOf(line) === "output");
  const steps = kind === "stepping" && hasOutputs ? kept.slice(-1) : [];
  const shown = showsAll ? (kind === "windowing" ? window(kept, step.choice) : kept) : steps;
  const system = step.system === "none" ? [] : [`system: ${step.system === "same" ? "be kind" : word("rule")}`];
  return {
    lines: [...system, ...shown.flatMap((exchange) => [...exchange.input, ...exchange.answer]), ...input],
    hear(answer) {
      client.exchanges = [...kept, { input, answer }];
    },
  };
}

function change(exchanges: readonly Exchange[], { move, choice }: Step, word: (kind: string) => string): Exchange[] {
  const at = exchanges.length === 0 ? 0 : choice % exchanges.length;
  switch (move) {
    case "say":
      return [...exchanges];
    case "edit": {
      const edited = exchanges.map((exchange, index) => {
        return index === at ? { ...exchange, answer: exchange.answer.map((line) => rewrite(line, word)) } : exchange;
      });
      // Half of the edits go on from what was edited, the others keep all that came after it.
      return choice % 2 === 0 ? edited.slice(0, at + 1) : edited;
    }
    case "delete":
      return exchanges.toSpliced(at, 1);
    case "regenerate":
      return exchanges.slice(0, -1);
    case "fresh":
      return [];
  }
}

const rewrite = (line: string, word: (kind: string) => string) =>
  kindOf(line) === "assistant" ? `assistant: ${word("edited")}` : line;

const window = (exchanges: readonly Exchange[], choice: number) => exchanges.slice(-1 - (choice % 2));

function makeInput(kept: readonly Exchange[], step: Step, word: (kind: string) => string): readonly string[] {
  const waiting = (kept.at(-1)?.answer ?? []).filter((line) => kindOf(line) === "call").map(callIdOf);
  const answered = step.tools === "abandon" ? [] : step.tools === "some" ? waiting.slice(0, 1) : waiting;
  const outputs = answered.map((id) => `output ${id}: ${word("gives")}`);
  if (step.tools === "stray" && step.choice === 0) outputs.push(`output ${word("stray")}: nobody asked`);
  const isFirst = kept.length === 0 && step.isCommon;
  const words = outputs.length > 0 && step.choice % 2 === 0 ? [] : [`user: ${isFirst ? "hi" : word("asks")}`];
  return [...outputs, ...words];
}
