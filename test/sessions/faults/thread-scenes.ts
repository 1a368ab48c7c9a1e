/** Conversations that continue: turn by turn, in parallel, by history, by id, with tools, until they are too long. */
import assert from "node:assert/strict";
import { toAddress } from "../../../src/core/conversation/address.ts";
import type { Caller } from "../../../src/core/gateway.ts";
import type { Item } from "../../../src/core/item.ts";
import type { Ask } from "../../../src/core/turn.ts";
import { checkSession, harmless, hint, inSession, memo, mustAnswer, type Scene } from "./checks.ts";
import { wait } from "./trouble.ts";
import { assistant, owner, type Outcome, user, type World } from "./world.ts";

/** A client that shows everything it knows. */
function createResender(world: World) {
  let known: readonly Item[] = [user("zero"), assistant("re: zero")];
  return {
    know: (change: (items: readonly Item[]) => readonly Item[]) => void (known = change(known)),
    async say(word: string): Promise<Outcome> {
      const items = [...known, user(word)];
      const outcome = await world.ask({ items, keep: "in-session" }, { hint });
      if (world.stored.includes(outcome.id))
        assert.deepEqual(world.seen(outcome.id), items, "the model sees what is shown");
      if (outcome.status === "completed") known = [...items, ...world.said(outcome.id)];
      return outcome;
    },
  };
}

/** A client that continues the newest turn reported as complete, or another. */
function createChainer(world: World, caller: Partial<Caller> = {}) {
  const paths = new Map<string | undefined, readonly Item[]>();
  let newest: string | undefined;
  return async (word: string, previousId = newest): Promise<Outcome> => {
    const items = [...(paths.get(previousId) ?? []), user(word)];
    const outcome = await world.ask({ items: [user(word)], previousId }, { memo, ...caller });
    if (world.stored.includes(outcome.id))
      assert.deepEqual(world.seen(outcome.id), items, "the model sees what came before");
    if (outcome.status !== "completed") return outcome;
    paths.set(outcome.id, [...items, ...world.said(outcome.id)]);
    newest = outcome.id;
    return outcome;
  };
}

/** Whatever was reported as complete can be continued. */
async function checkContinued(world: World): Promise<void> {
  for (const { id, status, isWanted } of world.outcomes.slice()) {
    if (status === "completed" && isWanted) await mustAnswer(world, { previousId: id }, { memo });
  }
}

export const threadScenes: Record<string, Scene> = {
  "a session continues, turn by turn": {
    async play(world) {
      for (const word of ["one", "two", "three"]) await world.ask(inSession(word), { hint });
      return () => checkSession(world);
    },
  },
  "turns of a session come at the same time": {
    async play(world) {
      for (const words of [
        ["one", "two", "three"],
        ["four", "five"],
      ]) {
        await Promise.all(words.map((word) => world.ask(inSession(word), { hint })));
      }
      return () => checkSession(world);
    },
  },
  "conversations under one name start at the same time": {
    async play(world) {
      const ask = (role: string, word: string) => {
        const system: Item = { type: "message", role: "system", content: `You are ${role}.` };
        return world.ask({ items: [system, user(word)], keep: "in-session" }, { hint });
      };
      await Promise.all([ask("a gardener", "one"), ask("the one who finds titles", "one"), ask("a gardener", "two")]);
      return async () => {
        const next = await mustAnswer(world, inSession("next"), { hint });
        const sessions = world.outcomes.flatMap(({ status, about }) =>
          status === "completed" ? [about?.session] : [],
        );
        assert.deepEqual([...new Set(sessions)], [next.about?.session], "they are in one session");
      };
    },
  },
  "more turns of a session arrive than may wait": {
    limits: { maxQueuedPerThread: 1 },
    hasFailures: true,
    async play(world) {
      await Promise.all(["one", "two", "three", "four"].map((word) => world.ask(inSession(word), { hint })));
      return () => checkSession(world);
    },
  },
  "a conversation is deleted while turns run in it": {
    hasFailures: true,
    async play(world) {
      const { conversations } = world.gateway;
      const made = await world.attempt((_, turnId) => conversations.create(owner, {}, { turnId, items: [] }));
      if (made === undefined) return async () => {};
      const { id: conversationId } = made;
      const say = (word: string) => world.ask({ items: [user(word)], conversationId }, { memo });
      const asking = [say("one"), say("two"), world.ask({ background: true, conversationId }, { memo })];
      await wait(2);
      const isDeleted = await world.attempt(async () => {
        await conversations.delete(owner, conversationId);
        return true;
      });
      await Promise.all(asking);
      return async () => {
        if (isDeleted !== true) return;
        assert.equal((await say("next")).code, "not_found");
        if (world.struck.some(({ name, how }) => name !== "stream" && !harmless.has(how))) return;
        for await (const record of world.store.exportRecords()) {
          // One that was just being started is reported as failed to a caller that returns for it.
          const isOver = record.type === "turn" && record.turn.status === "failed" && record.turn.session === undefined;
          assert.ok(record.type === "store" || isOver, "something of it remains");
        }
      };
    },
  },
  "a client shows its history, regenerates and shows another": {
    async play(world) {
      const client = createResender(world);
      await client.say("one");
      await client.say("two");
      client.know((items) => items.slice(0, -2));
      await client.say("two");
      client.know(() => [user("elsewhere"), assistant("re: elsewhere")]);
      await client.say("three");
      return async () => {
        await client.say("four");
        const { status, about } = await client.say("five");
        assert.equal(status, "completed");
        assert.equal(about?.history, "matched");
      };
    },
  },
  "a tool is called and answers": {
    async play(world) {
      const { id, status } = await world.ask(inSession("CALL"), { hint });
      const output: Item = { type: "tool-output", kind: "function", callId: `call_${id}`, output: "7" };
      if (status === "completed" && world.said(id).length > 0) {
        await world.ask({ items: [output], keep: "in-session" }, { hint });
      }
      await world.ask(inSession("two"), { hint });
      return () => checkSession(world);
    },
  },
  "responses follow each other and branch": {
    async play(world) {
      const say = createChainer(world);
      const { id, status } = await say("one");
      await say("two");
      if (status === "completed") await Promise.all([say("left", id), say("right", id)]);
      return async () => {
        await checkContinued(world);
        assert.equal((await say("next")).status, "completed");
      };
    },
  },
  "responses of a session branch, and the first is deleted": {
    hasFailures: true,
    async play(world) {
      const say = createChainer(world, { hint });
      const { id, status } = await say("one");
      if (status === "completed") await Promise.all([say("left", id), say("right", id)]);
      await world.attempt(() => world.gateway.forget(owner, id));
      return async () => void (await mustAnswer(world, inSession("next"), { hint }));
    },
  },
  "items are added to a conversation and removed from it": {
    async play(world) {
      const { conversations } = world.gateway;
      const made = await world.attempt((_, turnId) =>
        conversations.create(owner, {}, { turnId, items: [user("zero")] }),
      );
      if (made === undefined) return async () => {};
      const { id: conversationId } = made;
      const say = (word: string) => world.ask({ items: [user(word)], conversationId }, { memo });
      const add = (word: string) =>
        world.attempt((signal, turnId) =>
          conversations.append(owner, conversationId, { turnId, items: [user(word)] }, signal),
        );
      await say("one");
      const [, added] = await Promise.all([say("two"), add("added"), say("three")]);
      for (const place of added ?? []) {
        await world.attempt((signal) => conversations.removeItem(owner, conversationId, place, signal));
      }
      await world.attempt(() => conversations.update(owner, conversationId, { a: "b" }));
      return async () => {
        const reported = world.outcomes.flatMap(({ status, items }) => (status === "completed" ? items : []));
        const items = (await conversations.places(owner, conversationId)).flatMap(({ item }) => item ?? []);
        const { id } = await mustAnswer(world, { items: [user("next")], conversationId }, { memo });
        assert.deepEqual(world.seen(id), [...items, user("next")], "the model sees the conversation");
        for (const asked of reported)
          assert.equal(items.filter((item) => isSame(asked, item)).length, 1, "as it was reported");
        assert.equal((await add("last"))?.length, 1);
        await conversations.delete(owner, conversationId);
      };
    },
  },
  "a thread exceeds its limit": {
    limits: { maxTurnsPerThread: 2 },
    async play(world) {
      for (const word of ["one", "two", "three"]) await world.ask(inSession(word), { hint });
      return async () => {
        const { stored, outcomes } = world;
        const said = stored.slice(-2).flatMap((id) => outcomes.find((outcome) => outcome.id === id)?.items ?? []);
        const { id } = await mustAnswer(world, inSession("next"), { hint });
        const asked = world.seen(id).filter((item) => item.type === "message" && item.role === "user");
        assert.deepEqual(asked, [...said, user("next")]);
      };
    },
  },
  "a conversation is compacted": {
    hasFailures: true,
    async play(world) {
      const { id: previousId } = await createChainer(world)("one");
      await world.ask({ compacts: true, keep: "no", previousId, items: [] });
      await world.ask({ compacts: true, previousId, items: [] }, { memo });
      return () => checkContinued(world);
    },
  },
  "tokens are counted while a turn runs": {
    async play(world) {
      await world.ask(inSession("one"), { hint });
      const asking = world.ask(inSession("two"), { hint });
      const ask: Ask = {
        model: "m",
        itemsParam: "input",
        settings: { tools: [] },
        stream: false,
        ...inSession("three"),
      };
      await world.attempt((signal, turnId) => world.gateway.countTokens(ask, { turnId, owner, hint, signal }));
      await asking;
      return () => checkSession(world);
    },
  },
  "an item of a running turn is referenced": {
    hasFailures: true,
    async play(world) {
      const turnId = world.newId();
      const id = `msg_${toAddress({ turnId, side: "output", index: 0 })}`;
      const name = (word: string) => world.ask({ items: [{ type: "reference", id }, user(word)] }, { memo });
      const asking = world.ask({ items: [user("one")] }, { turnId, memo });
      const over = asking.then(() => true);
      while (world.said(turnId).length === 0 && !(await Promise.race([over, wait(1)])));
      const naming = name("two");
      const { status, text } = await asking;
      const named = await naming;
      return async () => {
        if (status !== "completed" || text === "") return;
        if (named.code === "not_found") assert.ok(named.hasDisconnected, "existing content is not found");
        assert.equal((await name("next")).status, "completed");
      };
    },
  },
};

function isSame(one: Item, other: Item): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
