/** Plays scenes while something fails in them, and describes what did not hold then. */
import assert from "node:assert/strict";
import type { SessionStore } from "../../../src/core/store.ts";
import { createRandom } from "../../random.ts";
import { checkAll, checkOthers, harmless, type Scene } from "./checks.ts";
import { liveScenes } from "./live-scenes.ts";
import { threadScenes } from "./thread-scenes.ts";
import { both, createTrouble, type How, kinds, type Trouble, wait, type Where } from "./trouble.ts";
import { createWorld, type World } from "./world.ts";

export interface Findings {
  readonly runs: number;
  /** The scene, what failed, and what did not hold. */
  readonly findings: readonly string[];
}

const scenes = Object.entries({ ...threadScenes, ...liveScenes });

/** Each scene with each fault, at its first call or step to its last, or at every n-th of them. */
export async function findEach(open: () => SessionStore, stride: number): Promise<Findings> {
  const findings: string[] = [];
  let runs = 0;
  for (const scene of scenes) {
    for (const kind of allKinds) {
      for (let at = 1 + (runs % stride), isThrough = false; !isThrough; at += stride) {
        const trouble = createTrouble(...kind, at);
        findings.push(...(await play(open(), scene, trouble, [[...kind, at]])));
        isThrough = !trouble.hasStruck;
        runs++;
        if (findings.length >= enough) return { runs, findings };
      }
    }
  }
  return { runs, findings };
}

/** Two random faults at a time; the same for the same seed. */
export async function findPairs(open: () => SessionStore, runs: number, seed: number): Promise<Findings> {
  const random = createRandom(seed);
  const findings: string[] = [];
  const choose = (): Fault => [...(allKinds[random(allKinds.length)] ?? never()), random(latest) + 1];
  for (let run = 0; run < runs && findings.length < enough; run++) {
    const scene = scenes[random(scenes.length)] ?? never();
    const [one, other] = [choose(), choose()];
    const trouble = both(createTrouble(...one), createTrouble(...other));
    findings.push(...(await play(open(), scene, trouble, [one, other])));
  }
  return { runs, findings };
}

type Fault = readonly [where: Where, how: How, at: number];

const allKinds = (["store", "adapter", "caller", "oldest caller", "newest caller"] as const).flatMap((where) =>
  kinds[where].map((how): readonly [Where, How] => [where, how]),
);

/** More of them would not be read. */
const enough = 20;

/** Most scenes are over then. */
const latest = 22;

function never(): never {
  throw new Error("there is no such thing");
}

/** Errors that nobody could catch. */
const stray: unknown[] = [];
process.on("unhandledRejection", (thrown) => stray.push(thrown));
process.on("uncaughtException", (thrown) => stray.push(thrown));

/** Nothing, or what did not hold. */
async function play(
  store: SessionStore,
  [name, scene]: readonly [string, Scene],
  trouble: Trouble,
  faults: readonly Fault[],
): Promise<readonly string[]> {
  const world = createWorld(store, trouble, scene.limits);
  const isHarmless = scene.hasFailures !== true && faults.every(([, how]) => harmless.has(how));
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("somebody waits forever")), timeoutMs);
  async function work(): Promise<void> {
    const check = await scene.play(world);
    trouble.heal();
    await rest(world);
    await checkAll(world);
    if (isHarmless) checkOthers(world);
    await check();
    await rest(world);
    await checkAll(world);
    await world.gateway.close(new Promise(() => {}));
    assert.deepEqual(stray, [], "an error that nobody could catch");
  }
  try {
    await Promise.race([work(), late.promise]);
    return [];
  } catch (thrown) {
    const went = faults.map(([where, how, at]) => `the ${where} ${how} at ${at}`).join(", ");
    const called = world.struck.map((call) => call.name).join(", ");
    return [`${name}; ${went} (${called}): ${thrown instanceof Error ? thrown.message : String(thrown)}`];
  } finally {
    trouble.heal();
    clearTimeout(timer);
    stray.length = 0;
    await store.close();
  }
}

/** Thousands of times what a scene takes, as the machine may be busy. */
const timeoutMs = 20_000;

async function rest({ gateway }: World): Promise<void> {
  await wait(2);
  while (gateway.load().waiting > 0 || gateway.load().live > 0) await wait(1);
}
