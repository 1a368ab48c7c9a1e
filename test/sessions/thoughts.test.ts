/** What no client can carry: the model's reasoning inside a tool loop comes back with the call that it led to. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { endpoints, tellWell } from "../harness/client.ts";
import { call, say, seenBy, shareGateway } from "../harness/house.ts";
import { toWire } from "./script.ts";

const open = shareGateway();
const before = ["user: one", "assistant: re: one"] as const;
const asked = [...before, "user: weather?"] as const;

/** A tool loop of a client that shows its history; what the model is shown with each of `requests`. */
async function loop(name: string, on: "chat" | "responses", requests: readonly (readonly string[])[]) {
  const { address, model } = await open();
  const more = { user: `${name} on ${on}` };
  model.script = [say("re: one")];
  await tellWell(address, { on, say: "one", more });
  model.script = [[{ type: "reasoning", text: "It is about Rome." }, ...call("c1", "weather")]];
  await tellWell(address, { on, say: toWire(on, asked), more });
  model.script = [say("It is sunny.")];
  const seen: string[][] = [];
  for (const lines of requests) {
    await tellWell(address, { on, say: toWire(on, lines), more });
    seen.push(seenBy(model.turns.at(-1)));
  }
  return seen;
}

for (const on of endpoints) {
  test(`${on}: reasoning stands again before its call while the tools run, and not after`, async () => {
    const running = [...asked, "call c1: weather {}", "output c1: sunny"];
    const ended = [...running, "assistant: It is sunny.", "user: thanks"];
    const [inside, after] = await loop("reasons", on, [running, ended]);
    assert.deepEqual(inside, [...asked, "reasoning: It is about Rome.", "call c1: weather {}", "output c1: sunny"]);
    assert.deepEqual(after, ended);
  });

  test(`${on}: reasoning never stands before a call that has another id`, async () => {
    const renamed = [...asked, "call other: weather {}", "output other: sunny"];
    assert.deepEqual(await loop("renames", on, [renamed]), [renamed]);
  });

  test(`${on}: an output alone gets its call's reasoning too`, async () => {
    const { address, model } = await open();
    const more = { user: `only the output on ${on}` };
    model.script = [[{ type: "reasoning", text: "Rome." }, ...call("c1", "weather")]];
    await tellWell(address, { on, say: "weather?", more });
    await tellWell(address, { on, say: toWire(on, ["output c1: sunny"]), more });
    assert.deepEqual(seenBy(model.turns.at(-1)), [
      "user: weather?",
      "reasoning: Rome.",
      "call c1: weather {}",
      "output c1: sunny",
    ]);
  });
}
