/** The rule of sessions, row by row: where a turn hangs, and what the model sees. */
import { test } from "node:test";
import { endpoints } from "../harness/client.ts";
import { shareGateway } from "../harness/house.ts";
import { play, type Row } from "./script.ts";

/** A conversation of two turns, as a client shows it. */
const two = ["user: one", "assistant: re: one", "user: two", "assistant: re: two"] as const;
const one = two.slice(0, 2);

const long = (letter: string): string => `${"a".repeat(1_500)}${letter}${"b".repeat(1_500)}`;

const told = (count: number): Row["steps"] =>
  ["user: one", "user: two", "user: three"].slice(0, count).map((line) => ({ send: [line] }));

const shown: Row["steps"] = [{ send: ["user: one"] }, { send: [...one, "user: two"] }];

const onlyNew: readonly Row[] = [
  {
    name: "a client that sends only what is new gets the memory",
    steps: [
      { send: ["user: one"], sees: ["user: one"], told: "new" },
      { send: ["user: two"], sees: [...one, "user: two"], told: "continued" },
      { send: ["user: three"], sees: [...two, "user: three"], told: "continued" },
    ],
  },
  {
    name: "several new messages continue the tip together",
    steps: [
      ...told(1),
      { send: ["user: two", "user: more"], sees: [...one, "user: two", "user: more"], told: "continued" },
    ],
  },
  {
    name: "the same words again are a new turn",
    steps: [...told(1), { send: ["user: one"], sees: [...one, "user: one"], told: "continued" }],
  },
  {
    name: "a word of the model at the end that nobody answered is a prefill, not a history",
    steps: [
      ...told(2),
      {
        send: ["user: three", "assistant: it begins"],
        sees: [...two, "user: three", "assistant: it begins"],
        told: "continued",
      },
    ],
  },
  {
    name: "a session that is known to show its history begins anew where nothing is shown",
    steps: [
      ...shown,
      { send: ["user: fresh"], sees: ["user: fresh"], told: "new" },
      { send: ["user: fresher"], sees: ["user: fresher"], told: "new" },
    ],
  },
];

const showing: readonly Row[] = [
  {
    name: "an answer is known whether its client shows its text before or behind its calls",
    steps: [
      { send: ["user: one"], answer: ["call c1: f {}", "assistant: then"] },
      { send: ["user: one", "assistant: then", "call c1: f {}", "user: two"], told: "matched" },
    ],
  },
  {
    name: "a client that shows its whole history is matched, and no turn is seen twice",
    steps: [
      { send: ["user: one"], told: "new" },
      { send: [...one, "user: two"], sees: [...one, "user: two"], told: "matched" },
      { send: [...two, "user: three"], sees: [...two, "user: three"], told: "matched" },
    ],
  },
  {
    name: "a history that was told piece by piece can be shown",
    steps: [...told(2), { send: [...two, "user: three"], sees: [...two, "user: three"], told: "matched" }],
  },
  {
    name: "two branches from one turn never see each other",
    steps: [
      ...shown,
      { send: [...one, "user: other"], sees: [...one, "user: other"], told: "forked" },
      {
        send: [...one, "user: other", "assistant: re: other", "user: on"],
        sees: [...one, "user: other", "assistant: re: other", "user: on"],
        told: "matched",
      },
      { send: [...two, "user: three"], sees: [...two, "user: three"], told: "matched" },
    ],
  },
  {
    name: "an answer that is asked for again hangs where the first one did",
    steps: [
      ...shown,
      { send: [...one, "user: two"], answer: ["assistant: better"], sees: [...one, "user: two"], told: "forked" },
      {
        send: [...one, "user: two", "assistant: better", "user: three"],
        sees: [...one, "user: two", "assistant: better", "user: three"],
        told: "matched",
      },
    ],
  },
  {
    name: "what is deleted from the end of a history stays deleted",
    steps: [
      ...shown,
      { send: [...two, "user: three"] },
      { send: [...one, "user: four"], sees: [...one, "user: four"], told: "forked" },
    ],
  },
  {
    name: "what is deleted from the middle of a history stays deleted",
    steps: [
      ...shown,
      { send: [...two, "user: three"] },
      {
        send: [...one, "user: three", "assistant: re: three", "user: four"],
        sees: [...one, "user: three", "assistant: re: three", "user: four"],
        told: "forked",
      },
    ],
  },
  {
    name: "what is deleted from the beginning of a history stays deleted",
    steps: [
      ...shown,
      {
        send: ["user: two", "assistant: re: two", "user: three"],
        sees: ["user: two", "assistant: re: two", "user: three"],
        told: "foreign",
      },
      {
        send: ["user: two", "assistant: re: two", "user: three", "assistant: re: three", "user: four"],
        sees: ["user: two", "assistant: re: two", "user: three", "assistant: re: three", "user: four"],
        told: "matched",
      },
    ],
  },
  {
    name: "what a client deleted is not given back, though all was told piece by piece before",
    steps: [
      ...told(3),
      {
        send: ["user: two", "assistant: re: two", "user: four"],
        sees: ["user: two", "assistant: re: two", "user: four"],
        told: "foreign",
      },
    ],
  },
  {
    name: "a window that begins with an answer stays a window",
    steps: [
      ...shown,
      { send: ["assistant: re: two", "user: three"], sees: ["assistant: re: two", "user: three"], told: "foreign" },
    ],
  },
  {
    name: "an edited answer is seen as edited",
    steps: [
      ...told(1),
      {
        send: ["user: one", "assistant: edited", "user: two"],
        sees: ["user: one", "assistant: edited", "user: two"],
        told: "foreign",
      },
    ],
  },
  {
    name: "a long history of which one letter is edited is not the one that was said",
    steps: [
      { send: [`user: ${long("x")}`], told: "new" },
      { send: [`user: ${long("x")}`, `assistant: re: ${long("x")}`, "user: two"], told: "matched" },
      { send: [`user: ${long("y")}`, `assistant: re: ${long("y")}`, "user: two"], told: "foreign" },
      { send: [`user: ${long("x")}`, `assistant: re: ${long("x")}`, "user: again"], told: "forked" },
    ],
  },
  {
    name: "a history that nobody knows is seen as it is shown",
    steps: [
      {
        send: ["user: strange", "assistant: never said", "user: one"],
        sees: ["user: strange", "assistant: never said", "user: one"],
        told: "foreign",
      },
      {
        send: ["user: strange", "assistant: never said", "user: one", "assistant: re: one", "user: two"],
        sees: ["user: strange", "assistant: never said", "user: one", "assistant: re: one", "user: two"],
        told: "matched",
      },
    ],
  },
  {
    name: "a question that was asked here with a prefill behind it is a shown history",
    steps: [
      { send: ["user: one"] },
      { send: ["user: one", "assistant: it begins"], sees: ["user: one", "assistant: it begins"], told: "foreign" },
    ],
  },
  {
    name: "a history shown by a client that strips its answers' thoughts teaches that histories are shown",
    steps: [
      { send: ["user: one"], answer: ["assistant: <think>hm</think>yes"] },
      {
        send: ["user: one", "assistant: yes", "user: two"],
        sees: ["user: one", "assistant: yes", "user: two"],
        told: "foreign",
      },
      { send: ["user: fresh"], sees: ["user: fresh"], told: "new" },
    ],
  },
  {
    name: "a summary in front of the end of a history is seen as it is shown",
    steps: [
      ...shown,
      {
        send: ["system: They talked.", "user: two", "assistant: re: two", "user: three"],
        sees: ["system: They talked.", "user: two", "assistant: re: two", "user: three"],
        told: "foreign",
      },
    ],
  },
];

const asked = ["user: weather?", "call c1: weather {}"] as const;

const calling: readonly Row[] = [
  {
    name: "an output alone continues the turn that made the call",
    steps: [
      { send: ["user: weather?"], answer: ["call c1: weather {}"] },
      { send: ["output c1: sunny"], sees: [...asked, "output c1: sunny"], told: "continued" },
      {
        send: ["user: thanks"],
        sees: [...asked, "output c1: sunny", "assistant: re: sunny", "user: thanks"],
        told: "continued",
      },
    ],
  },
  {
    name: "an output with its call, from a client that remembers nothing else, gets the memory",
    steps: [
      ...told(1),
      { send: ["user: weather?"], answer: ["call c1: weather {}"] },
      {
        send: [...asked, "output c1: sunny"],
        sees: [...one, ...asked, "output c1: sunny"],
        told: "continued",
      },
    ],
  },
  {
    name: "a client that shows its history while it runs tools is matched",
    steps: [
      { send: ["user: one"] },
      {
        send: [...one, "user: weather?"],
        answer: ["call c1: weather {}"],
        told: "matched",
      },
      {
        send: [...one, ...asked, "output c1: sunny"],
        sees: [...one, ...asked, "output c1: sunny"],
        told: "matched",
      },
    ],
  },
  {
    name: "parallel calls are answered together",
    steps: [
      { send: ["user: both?"], answer: ["call c1: rome {}", "call c2: oslo {}"] },
      {
        send: ["output c1: sun", "output c2: snow"],
        sees: ["user: both?", "call c1: rome {}", "call c2: oslo {}", "output c1: sun", "output c2: snow"],
        told: "continued",
      },
    ],
  },
  {
    name: "a call that nobody answered is left out, and never poisons the session",
    steps: [
      { send: ["user: weather?"], answer: ["call c1: weather {}"] },
      { send: ["user: never mind"], sees: ["user: weather?", "user: never mind"], told: "continued" },
      {
        send: ["user: on"],
        sees: ["user: weather?", "user: never mind", "assistant: re: never mind", "user: on"],
        told: "continued",
      },
    ],
  },
  {
    name: "a shown call that nobody answered is left out",
    steps: [
      { send: ["user: weather?"], answer: ["call c1: weather {}"] },
      { send: [...asked, "user: never mind"], sees: ["user: weather?", "user: never mind"], told: "matched" },
    ],
  },
  {
    name: "of two calls only the answered one is seen",
    steps: [
      { send: ["user: both?"], answer: ["call c1: rome {}", "call c2: oslo {}"] },
      {
        send: ["output c1: sun", "user: that will do"],
        sees: ["user: both?", "call c1: rome {}", "output c1: sun", "user: that will do"],
        told: "continued",
      },
    ],
  },
  {
    name: "an output whose call the session does not know is refused and leaves no trace",
    steps: [
      ...told(1),
      { send: ["output c9: what?"], fails: "tool_call_mismatch" },
      { send: ["user: two"], sees: [...one, "user: two"], told: "continued" },
    ],
  },
  {
    name: "a window that cuts between the last call and its output continues the call's turn",
    steps: [
      ...shown,
      { send: [...two, "user: weather?"], answer: ["call c1: weather {}"] },
      { send: ["output c1: sunny"], sees: [...two, ...asked, "output c1: sunny"], told: "continued" },
    ],
  },
  {
    name: "the call of an output that a window cut off comes back, and nothing else",
    steps: [
      { send: ["user: weather?"], answer: ["call c1: weather {}"] },
      { send: [...asked, "output c1: sunny"] },
      { send: [...asked, "output c1: sunny", "assistant: re: sunny", "user: two"] },
      {
        send: ["output c1: sunny", "assistant: re: sunny", "user: two", "assistant: re: two", "user: three"],
        sees: [
          "call c1: weather {}",
          "output c1: sunny",
          "assistant: re: sunny",
          "user: two",
          "assistant: re: two",
          "user: three",
        ],
        told: "foreign",
      },
    ],
  },
  {
    name: "a call counts by its id alone, however its arguments are written",
    steps: [
      { send: ["user: one"] },
      { send: [...one, "user: weather?"], answer: ['call c1: weather {"city":"Rome"}'] },
      {
        send: [...one, "user: weather?", 'call c1: weather {"city":"Rome","unit":null}', "output c1: sunny"],
        told: "matched",
      },
    ],
  },
  {
    name: "call ids that a model repeats in every turn belong each to its own place",
    steps: [
      { send: ["user: first?"], answer: ["call call_0: look {}"] },
      { send: ["output call_0: a cat"] },
      { send: ["user: second?"], answer: ["call call_0: look {}"] },
      {
        send: ["output call_0: a dog"],
        sees: [
          "user: first?",
          "call call_0: look {}",
          "output call_0: a cat",
          "assistant: re: a cat",
          "user: second?",
          "call call_0: look {}",
          "output call_0: a dog",
        ],
        told: "continued",
      },
    ],
  },
  {
    name: "an output may come late, after the person has gone on",
    steps: [
      { send: ["user: weather?"], answer: ["call c1: weather {}"] },
      { send: ["user: meanwhile"] },
      { send: ["output c1: sunny"], sees: [...asked, "output c1: sunny"], told: "continued" },
    ],
  },
];

const open = shareGateway();

for (const on of endpoints) {
  for (const row of [...onlyNew, ...showing, ...calling]) {
    test(`${on}: ${row.name}`, async () => play(await open(), row, on));
  }
}
