/** The kinds of clients that sessions must serve: what each knows of its conversation, and what it sends next. */
import fc from "fast-check";
import type { Item } from "../../src/core/item.ts";
import { isOfModel } from "./model.ts";
import { distort, type Distortion } from "./distortions.ts";

/**
 * `delta` sends only new items; `stepping` too, but shows the steps of its turn while it runs tools; `resending` sends
 * its whole history; `windowing` the end of it; `constant` its history, under a name that it shares with others;
 * `nameless` its history without any name.
 */
const kinds = ["delta", "stepping", "resending", "windowing", "constant", "nameless"] as const;
export type Kind = (typeof kinds)[number];

/** Which conversation continues, and from where. */
const moves = ["say", "edit", "regenerate", "back", "start"] as const;

/** How the turn ends. `cut` is an answer that the model could not finish: it is stored. */
const fates = [
  "kept",
  "cut",
  "unstored",
  "fails before",
  "fails after",
  "leaves",
  "leaves unnoticed",
  "returns",
  "crash",
] as const;
export type Fate = (typeof fates)[number];

export interface Step {
  readonly who: number;
  readonly move: (typeof moves)[number];
  /** How far back, or which of several. */
  readonly choice: number;
  /** What happens to the calls that wait for an output. */
  readonly tools: "answer" | "some" | "abandon" | "late" | "stray";
  readonly messages: number;
  readonly flavour: "plain" | "common" | "image";
  readonly system: "none" | "same" | "other";
  /** The system message comes last instead of first. */
  readonly systemLast: boolean;
  /** A blank one has no text at all, like that of a model that used all of its tokens for reasoning. */
  readonly answer: {
    readonly text: 0 | 1 | 2;
    readonly reasons: boolean;
    readonly calls: number;
    readonly isBlank: boolean;
  };
  readonly fate: Fate;
  /** A client that did not receive the end keeps what it received. */
  readonly keepsHalf: boolean;
  /** A client that does not show the calls that it never answered. */
  readonly forgetsOpenCalls: boolean;
  readonly restart: boolean;
  /** A turn of the client's session that is deleted before it sends. */
  readonly deletes: "none" | "newest" | "any";
  readonly distortion: Distortion;
}

const seldom = fc.integer({ min: 0, max: 5 }).map((chance) => chance === 5);
const often = fc.integer({ min: 0, max: 2 }).map((chance) => chance !== 0);

export const stepArbitrary: fc.Arbitrary<Step> = fc.record({
  who: fc.nat(5),
  move: fc.oneof({ arbitrary: fc.constant("say" as const), weight: 3 }, fc.constantFrom(...moves)),
  choice: fc.nat(6),
  tools: fc.constantFrom("answer", "answer", "some", "abandon", "late", "stray"),
  messages: fc.constantFrom(1, 1, 2, 3),
  flavour: fc.constantFrom("plain", "plain", "common", "image"),
  system: fc.constantFrom("none", "same", "other"),
  systemLast: seldom,
  answer: fc.record({
    text: fc.constantFrom(1 as const, 0 as const, 2 as const),
    reasons: seldom,
    calls: fc.constantFrom(0, 0, 0, 1, 2, 3),
    isBlank: fc.nat(19).map((chance) => chance === 19),
  }),
  fate: fc.oneof({ arbitrary: fc.constant("kept" as const), weight: 3 }, fc.constantFrom(...fates)),
  keepsHalf: fc.boolean(),
  forgetsOpenCalls: seldom,
  restart: seldom,
  deletes: fc.oneof({ arbitrary: fc.constant("none" as const), weight: 8 }, fc.constantFrom("newest", "any")),
  distortion: fc.record({
    blanks: often,
    lineEnds: often,
    parts: often,
    merge: fc.boolean(),
    withoutReasoning: often,
    serialise: often,
    reorder: fc.boolean(),
    rename: fc.boolean(),
    salt: fc.nat(1000),
  }),
});

export const kindsArbitrary = fc.array(
  fc.constantFrom<Kind[]>("delta", "stepping", "resending", "windowing", "constant", ...kinds),
  {
    minLength: 1,
    maxLength: 5,
  },
);

/** A request and its answer, as the client remembers them. */
export interface Exchange {
  readonly turnId: string;
  readonly after: Exchange | undefined;
  readonly input: readonly Item[];
  readonly output: readonly Item[];
}

export interface Client {
  readonly name: string;
  readonly kind: Kind;
  /** Its user name; clients with the same one share a session. */
  readonly user: string | undefined;
  /** All exchanges that it remembers, the newest last. */
  readonly exchanges: Exchange[];
}

export interface Words {
  /** A word that was never used before. */
  fresh(prefix: string): string;
}

export interface Sending {
  readonly items: readonly Item[];
  /** The conversation as the client knows it, with the new items, however much it shows. */
  readonly whole: readonly Item[];
  readonly after: Exchange | undefined;
  readonly input: readonly Item[];
}

export function createClients(chosen: readonly Kind[]): readonly Client[] {
  return chosen.map((kind, index) => {
    const user = { constant: "app", nameless: undefined }[kind as string] ?? `user-${index}`;
    return { name: `${kind} ${index}`, kind, user: kind === "nameless" ? undefined : user, exchanges: [] };
  });
}

/** What the client sends next. `mayBegin`: a request without history starts a new thread. */
export function nextSending(client: Client, step: Step, mayBegin: boolean, words: Words): Sending {
  const chosen = choosePoint(client, step);
  // Without any text of the model it would not be a history, and would continue the thread.
  const after = mayBegin || itemsUpTo(chosen).some(isOfModel) ? chosen : client.exchanges.at(-1);
  const again = step.move === "regenerate" ? client.exchanges.findLast((each) => each.after === after) : undefined;
  const made = again?.input ?? makeInput(client, after, step, words);
  const outputs = client.kind === "stepping" ? made.filter((item) => item.type === "tool-output") : [];
  const input = outputs.length > 0 ? outputs : made;
  const system = makeSystem(client, step, words);
  const withSystem = (items: readonly Item[]) => (step.systemLast ? [...items, ...system] : [...system, ...items]);
  // Where nothing is shown of an answer, questions that are merged around it cannot be separated again.
  const merge = step.distortion.merge && client.exchanges.every(({ output }) => output.some(isOfModel));
  const distortion = { ...step.distortion, merge };
  if (sendsOnlyNew(client))
    return {
      items: withSystem(
        distort(outputs.length > 0 ? [...lastExchanges(after, 1), ...input] : input, { ...distortion, rename: false }),
      ),
      whole: [...itemsUpTo(after), ...input],
      after,
      input,
    };
  const shown = client.kind === "windowing" ? lastExchanges(after, 2 + (step.choice % 3)) : itemsUpTo(after);
  const all = [...shown, ...input];
  const answered = step.forgetsOpenCalls ? forgetOpenCalls(all) : all;
  const told = mayBegin || answered.some(isOfModel) ? answered : all;
  return {
    items: withSystem(distort(told, distortion)),
    whole: [...itemsUpTo(after), ...input],
    after,
    input,
  };
}

/** It relies on the gateway to remember the conversation. */
export function sendsOnlyNew({ kind }: Client): boolean {
  return kind === "delta" || kind === "stepping";
}

function choosePoint(client: Client, { move, choice }: Step): Exchange | undefined {
  const last = client.exchanges.at(-1);
  if (sendsOnlyNew(client) || last === undefined) return last;
  switch (move) {
    case "say":
      return last;
    case "regenerate":
      return last.after;
    case "edit": {
      let point: Exchange | undefined = last;
      for (let back = 0; back <= choice; back++) point = point?.after;
      return point;
    }
    case "back":
      return client.exchanges.at(-1 - (choice % client.exchanges.length));
    case "start":
      return undefined;
  }
}

function makeInput(client: Client, after: Exchange | undefined, step: Step, words: Words): readonly Item[] {
  const outputs = makeOutputs(client, after, step, words);
  const messages = Array.from({ length: outputs.length > 0 ? step.messages - 1 : step.messages }, (_, index) => {
    const isCommon = step.flavour === "common" && index === 0 && after === undefined && client.kind !== "windowing";
    const text = isCommon ? "hi" : `${words.fresh("asks")}\nand more`;
    const image = { type: "image" as const, url: `https://images/${text.split("\n")[0]}` };
    const content = step.flavour === "image" && index === 0 ? [{ type: "text" as const, text }, image] : text;
    return { type: "message", role: "user", content } as const;
  });
  return [...outputs, ...messages];
}

function makeOutputs(client: Client, after: Exchange | undefined, step: Step, words: Words): readonly Item[] {
  // Late: a client that sends only new items may still answer a call after the user has continued.
  const isLate = step.tools === "late" && client.kind === "delta" && after?.after !== undefined;
  const from = isLate ? after.after : after;
  const answered = isLate ? after.input.flatMap((item) => (item.type === "tool-output" ? [item.callId] : [])) : [];
  const open = (from?.output ?? []).flatMap((item) =>
    item.type === "tool-call" && !answered.includes(item.callId) ? [item.callId] : [],
  );
  if (step.tools === "stray" && step.choice === 0) {
    return [{ type: "tool-output", kind: "function", callId: words.fresh("stray"), output: "nobody asked" }];
  }
  const wanted = step.tools === "abandon" ? [] : step.tools === "some" ? open.slice(0, -1) : open;
  return wanted.map((callId) => ({ type: "tool-output", kind: "function", callId, output: words.fresh("gives") }));
}

function makeSystem(client: Client, step: Step, words: Words): readonly Item[] {
  if (step.system === "none") return [];
  const content = step.system === "same" ? `you serve ${client.name}` : `now ${words.fresh("rule")}`;
  return [{ type: "message", role: step.choice % 2 === 0 ? "system" : "developer", content }];
}

function forgetOpenCalls(items: readonly Item[]): readonly Item[] {
  const answered = new Set(items.flatMap((item) => (item.type === "tool-output" ? [item.callId] : [])));
  return items.filter((item) => item.type !== "tool-call" || answered.has(item.callId));
}

function itemsUpTo(exchange: Exchange | undefined): readonly Item[] {
  return pathTo(exchange).flatMap((each) => [...each.input, ...each.output]);
}

/** The last exchanges, each from the user's message to the answer, with the tools between. */
function lastExchanges(exchange: Exchange | undefined, count: number): readonly Item[] {
  const path = pathTo(exchange);
  const starts = path.flatMap((each, index) => (each.input[0]?.type === "message" ? [index] : []));
  return path.slice(starts.at(-count) ?? 0).flatMap((each) => [...each.input, ...each.output]);
}

function pathTo(exchange: Exchange | undefined): readonly Exchange[] {
  const path: Exchange[] = [];
  for (let each = exchange; each !== undefined; each = each.after) path.push(each);
  return path.toReversed();
}
