/** Turns that outlive their callers: with a key, in the background, and when the gateway is closed. */
import assert from "node:assert/strict";
import type { Caller } from "../../../src/core/gateway.ts";
import type { Path } from "../../../src/core/place/path.ts";
import type { Memory } from "../../../src/core/place/place.ts";
import type { Ask } from "../../../src/core/turn.ts";
import { checkSession, hint, inSession, key, memo, mustAnswer, type Scene } from "./checks.ts";
import { wait } from "./trouble.ts";
import { owner, type Outcome, user, type World } from "./world.ts";

/** A request is sent twice at the same time, again while it runs, and again when it is over. */
function repeating(
  ask: Partial<Ask>,
  caller: Partial<Caller>,
  more: Pick<Scene, "limits" | "hasFailures"> = {},
): Scene {
  return {
    ...more,
    async play(world) {
      const send = () => world.ask(ask, { ...caller, key });
      const both = [send(), send()];
      await wait(4);
      await Promise.all([...both, send()]);
      await send();
      return () => checkKey(world, send);
    },
  };
}

/** The key is free, or has one answer. */
async function checkKey({ outcomes }: World, send: () => Promise<Outcome>): Promise<void> {
  const completed = outcomes.flatMap(({ status, about }) => (status === "completed" && about ? [about.id] : []));
  const answers: Outcome[] = [];
  for (const answer of [await send(), await send()]) {
    // A caller that has cancelled it does not want it again.
    const isDone = answer.status === "completed" || (answer.status === "cancelled" && answer.isRepeated);
    assert.ok(isDone, `a key is neither free nor answered: ${answer.status}, ${answer.code}`);
    answers.push(answer);
  }
  assert.equal(answers[1]?.isRepeated, true);
  assert.equal(answers[1]?.text, answers[0]?.text);
  assert.equal(new Set([...completed, ...answers.map(({ about }) => about?.id)]).size, 1, "a key has one answer");
}

/** What was reported of a background turn is true. */
async function checkRecalled({ gateway, stored, lost, struck }: World, { id, status }: Outcome): Promise<void> {
  const recalled = await gateway.recall(owner, id);
  if (status === "thrown" || (recalled === undefined && struck.length > 0)) return;
  assert.ok(recalled?.state.status === "over", `${id}, reported as ${status}, is not over`);
  const now = recalled.state.answer.status;
  assert.equal(now === "completed", stored.includes(id), `${id} is reported as ${now}`);
  if (status === "completed" || (status === "failed" && !lost.has(id))) assert.equal(now, status);
}

function closing(hops: number): Scene {
  return {
    hasFailures: true,
    async play(world) {
      const { gateway, ask } = world;
      const asking = [
        ask(inSession("one"), { hint }),
        ask(inSession("two"), { hint }),
        ask({}, { key }),
        ask({ background: true, stream: false }, { memo }),
        ask({ background: true }, { memo, key: { ...key, key: "k2" } }),
      ];
      await wait(hops);
      await gateway.close(wait(6));
      assert.equal(gateway.load().live, 0, "a turn still runs in a closed gateway");
      await Promise.all(asking);
      assert.equal(gateway.load().live, 0, "a turn starts in a closed gateway");
      return async () => assert.equal((await ask({})).code, "draining");
    },
  };
}

export const liveScenes: Record<string, Scene> = {
  "a request of a session is repeated with its key": repeating({ keep: "in-session" }, { hint }),
  "a response is repeated with its key": repeating({ stream: false }, { memo }),
  "a request that is not stored is repeated with its key": repeating({ keep: "no" }, {}),
  "a turn in the background is repeated with its key": repeating({ background: true }, { memo }),
  "a request whose answer is too long to be replayed is repeated with its key": repeating(
    { keep: "in-session" },
    { hint },
    { limits: { maxEvents: 2 }, hasFailures: true },
  ),
  "as many turns run in the background as allowed": repeating(
    { background: true },
    { memo },
    { limits: { maxRunning: 1 }, hasFailures: true },
  ),
  "a stream that was cut is resumed": {
    async play(world) {
      const first = world.ask({}, { key });
      await wait(3);
      const resumes = { param: "Last-Event-ID", isOf: (id: string) => id === world.outcomes[0]?.id };
      const again = await world.ask({}, { key, resumes });
      const { status, text } = await first;
      if (status === "completed" && again.status === "completed") assert.equal(again.text, text);
      return () => checkKey(world, () => world.ask({}, { key }));
    },
  },
  "a connection remembers what is not stored": {
    async play(world) {
      const paths = new Map<string, Path>();
      const memory: Memory = {
        find: (turnId) => paths.get(turnId),
        keep: (path) => void paths.set(path.tip?.id ?? "", path),
      };
      const one = await world.ask({ keep: "no", items: [user("one")] }, { memo, memory });
      const ask = { keep: "no", previousId: one.id } as const;
      if (one.status === "completed") await world.ask(ask, { memo, memory });
      return async () => {
        if (one.status !== "left") assert.equal(paths.has(one.id), one.status === "completed");
        if (one.status === "completed") await mustAnswer(world, ask, { memo, memory });
      };
    },
  },
  "turns continue in the background": {
    async play(world) {
      const { gateway, ask } = world;
      const follow = async (id: string) => {
        const recalled = await world.attempt(() => gateway.recall(owner, id));
        await world.attempt(async (signal) => {
          for await (const _ of recalled?.follow(signal) ?? []);
        });
      };
      const one = await ask({ background: true, stream: false, items: [user("one")] }, { memo, hint });
      const two = ask({ background: true, items: [user("two")] }, { memo, hint });
      const three = await ask({ background: true, stream: false, items: [user("three")] }, { memo, hint });
      await Promise.all([follow(one.id), follow(three.id), two]);
      return async () => {
        for (const outcome of world.outcomes.slice()) await checkRecalled(world, outcome);
        await checkSession(world);
      };
    },
  },
  "turns in the background are cancelled and deleted": {
    hasFailures: true,
    async play(world) {
      const { gateway } = world;
      const ask = (word: string) => world.ask({ background: true, stream: false, items: [user(word)] }, { memo, hint });
      const [one, two, three] = [await ask("one"), await ask("two"), await ask("three")];
      await Promise.all([
        world.attempt(() => gateway.cancel(owner, two.id)),
        world.attempt(() => gateway.forget(owner, three.id)),
        world.attempt(() => gateway.recall(owner, one.id)),
      ]);
      await world.attempt(() => gateway.cancel(owner, one.id));
      return async () => {
        for (const outcome of [one, two]) await checkRecalled(world, outcome);
        await mustAnswer(world, inSession("next"), { hint });
      };
    },
  },
  "turns in the background are followed slowly": {
    limits: { maxEvents: 1 },
    hasFailures: true,
    async play(world) {
      const { gateway } = world;
      const ask = () => world.ask({ background: true, stream: false }, { memo });
      /** Reads a little, and no more until it leaves. */
      const follow = (id: string, leave: () => Promise<unknown>) =>
        world.attempt(async (signal) => {
          const events = (await gateway.recall(owner, id))?.follow(signal);
          await events?.next();
          await wait(12);
          await leave();
          await events?.return();
        });
      const [one, two] = [await ask(), await ask()];
      await Promise.all([follow(one.id, () => wait(1)), follow(two.id, () => gateway.cancel(owner, two.id))]);
      return async () => {
        for (const outcome of [one, two]) await checkRecalled(world, outcome);
      };
    },
  },
  "nothing is stored": {
    async play(world) {
      await world.ask({ keep: "no" }, { memo });
      await world.ask({ keep: "no" }, { hint });
      await world.ask({ keep: "no" }, { hint, key });
      return async () => {
        assert.deepEqual(world.stored, []);
        await checkSession(world);
      };
    },
  },
  "the gateway is closed as soon as turns are requested": closing(0),
  "the gateway is closed while turns run": closing(5),
};
