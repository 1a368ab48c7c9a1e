/** What is kept for turns that outlive their caller is erased with their user, from the files too. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, call, hear, type Wish } from "../harness/client.ts";
import { placesWith } from "../harness/engine.ts";
import { openGateway, operatorToken, say, shareGateway } from "../harness/house.ts";
import { ask, askWell, cancel, ended, failsAfter, hold, idIn, keyed, look, promise, remove } from "./outlive.ts";

const open = shareGateway({ limits: { drain_timeout_ms: 0 } });

test("of an erased user no word is left in the files: background, keyed, streamed, failed, cancelled, left", async (context) => {
  const canary = "canary-7f3a";
  const [cancelled, cut] = [hold(canary), hold(canary)];
  const { address, model, folder, close } = await openGateway(context);
  const user = "ann";
  const wish: Wish = { on: "responses", say: `asked ${canary}`, stream: true, more: { user } };
  const deltas = Array.from({ length: 20 }, () => say(`${canary} `));

  model.script = deltas;
  const ids = [await promise(address, { user }, { say: wish.say })];
  await ended(address, ids[0]!);
  await askWell(address, keyed(wish, "responses"));
  await askWell(address, keyed({ ...wish, on: "chat" }, "chat"));
  await askWell(address, keyed({ ...wish, more: { user, store: false } }, "unstored"));
  model.script = failsAfter(canary);
  await ask(address, keyed(wish, "failed"));
  ids.push(await promise(address, { user }, { say: wish.say }));
  await ended(address, ids[1]!);
  model.script = cancelled.script;
  ids.push(await promise(address, { user }, { say: wish.say }));
  await cancelled.begun;
  await cancel(address, ids[2]!);
  model.script = cut.script;
  const left = await begin(address, wish);
  await hear(left, canary);
  left.destroy();
  await cut.aborted;
  assert.notDeepEqual(await placesWith(folder, canary), []);

  const erase = () => call(address, "DELETE", `/operator/sessions?user=${user}`, undefined, { token: operatorToken });
  assert.equal((await erase()).status, 200);
  // What was still ending when it was erased may not come back either.
  model.script = [say("ok")];
  await askWell(address, { on: "chat", say: "next", more: { user } });
  await erase();
  for (const id of ids) assert.equal((await look(address, id, "?stream=true")).status, 404);
  await close();
  assert.deepEqual(await placesWith(folder, canary), []);
});

test("a keyed answer that was deleted is not told again: its key asks the model anew", async () => {
  const { address, model } = await open();
  model.script = [say("secret")];
  const wish = keyed({ on: "responses", say: "hi" }, "deleted");
  const id = idIn(await askWell(address, wish));
  assert.equal((await remove(address, id)).status, 200);
  model.script = [say("new")];
  const again = await askWell(address, wish);
  assert.equal(again.headers.get("x-portico-replayed"), null);
  assert.equal(again.body.output[0].content[0].text, "new");
});
