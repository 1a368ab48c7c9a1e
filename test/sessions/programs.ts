/** Plays two programs in one session: an agent's main request, with tools, and its request for a title, without. */
import assert from "node:assert/strict";
import { tellWell, type Wish } from "../harness/client.ts";
import { gate, type Gateway, say, seenBy, type Script } from "../harness/house.ts";

export const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }];

const system = (content: string) => ({ role: "system", content });
const user = (content: string) => ({ role: "user", content });

/** As opencode sends it: other instructions, no tools, the same header. */
export const titleWish = (session: string): Wish => ({
  on: "chat",
  say: [system("You write titles."), user("Generate a title for this conversation:"), user("Plan my garden.")],
  headers: { "x-session-id": session },
});

export const mainWish = (session: string, words = "Plan my garden."): Wish => ({
  on: "chat",
  say: [system("You are an agent."), user(words)],
  headers: { "x-session-id": session },
  more: { tools },
});

/** Which of both ends first where they overlap; `before`: the first has ended when the other comes. */
export type Ends = "title" | "main" | "before";
type Name = "title" | "main";

let played = 0;

/** `gateways`: where the title is asked for, and where the main request goes. */
export async function playPrograms(
  first: Name,
  ends: Ends,
  [titles, mains]: readonly [titles: Gateway, mains: Gateway],
): Promise<void> {
  const session = `programs ${(played += 1)} ${first} ${ends}`;
  const held = { title: hold(), main: hold() };
  titles.model.script = held.title.script;
  mains.model.script = held.main.script;
  if (titles === mains)
    titles.model.script = (turn, signal) => {
      const isTitle = seenBy(turn)[0] === "system: You write titles.";
      return (isTitle ? held.title : held.main).script(turn, signal);
    };
  const begin = (name: Name) =>
    name === "title" ? tellWell(titles.address, titleWish(session)) : tellWell(mains.address, mainWish(session));
  const second: Name = first === "title" ? "main" : "title";

  const told = { [first]: begin(first) } as Record<Name, ReturnType<typeof begin>>;
  await held[first].asked;
  if (ends === "before") {
    held[first].go();
    await told[first];
  }
  told[second] = begin(second);
  await held[second].asked;
  const order = ends === "before" ? [second] : ends === first ? [first, second] : [second, first];
  for (const name of order) {
    held[name].go();
    await told[name];
  }

  assert.deepEqual(held.main.seen(), ["system: You are an agent.", "user: Plan my garden."]);
  assert.equal(held.title.seen()[0], "system: You write titles.");
  assert.equal(held.title.seen().length, 3);
  assert.equal((await told.main).headers.get("x-portico-history"), "new");

  // The main request is the tip: a client that sends only what is new goes on behind it.
  const after = hold();
  after.go();
  mains.model.script = after.script;
  const next = await tellWell(mains.address, mainWish(session, "And roses?"));
  assert.equal(next.headers.get("x-portico-history"), "continued");
  assert.deepEqual(after.seen(), [
    "system: You are an agent.",
    "user: Plan my garden.",
    "assistant: done",
    "user: And roses?",
  ]);
}

/** A model that answers when it is let go. */
function hold() {
  const [asked, going] = [gate(), gate()];
  let seen: string[] = [];
  const script: Exclude<Script, readonly unknown[]> = async function* (turn) {
    seen = seenBy(turn);
    asked.open();
    await going.opened;
    yield say("done");
  };
  return { script, asked: asked.opened, go: going.open, seen: () => seen };
}
