/** Adds turns to the Redis store, and ends running ones: each in one script, and so in one round trip. */
import type { Commit, IdempotencyKey, TurnWriter, StoredTurn } from "../../core/store.ts";
import { withoutTold } from "../paths.ts";
import { toAbandoned } from "../../core/frame/replay.ts";
import { nameOfRun } from "../../core/peers.ts";
import type { Retries } from "./retries.ts";
import type { Access } from "./access.ts";
import type { RedisPeers } from "./peers.ts";
import { toList, toTexts } from "./script.ts";
import * as scripts from "./scripts.ts";
import { codeOf } from "./trouble.ts";
import { type TurnParts, readTurn, sizeOfParts, toParts } from "./turn.ts";

export function createTurnWriter(
  access: Access,
  retries: Retries,
  peers: Pick<RedisPeers, "isTaken" | "isOurs">,
  { deleteTurn }: Pick<TurnWriter, "deleteTurn">,
): Pick<TurnWriter, "commit" | "begin" | "end" | "endRunning"> {
  const { now, recent } = access;

  function toKey(owner: string, key: IdempotencyKey | undefined, turnId: string, time: number): readonly string[] {
    if (key === undefined) return ["", ""];
    return [access.hashKey(owner, key.key), JSON.stringify([key.fingerprint, turnId, time])];
  }

  async function store({ turns, session: move, key, begun, forget = [] }: Commit, parts: readonly TurnParts[]) {
    const { id: tip, owner } = turns[1] ?? turns[0];
    const time = now().getTime();
    return access.withHints((hash, hintKey) => {
      const hint = move?.hint === undefined ? "" : hash(owner, move.hint);
      const args = [
        begun === true ? "1" : "",
        String(parts.length),
        ...parts.flat(),
        move?.id ?? "",
        hint,
        hintKey,
        move?.expectedTip ?? "",
        move?.otherwise ?? "",
        move?.resends === true ? "1" : "",
        ...toKey(owner, key, tip, time),
        ...forget,
      ];
      return access.write(scripts.commit, [String(time), "", ...args], {
        retryArgs: [String(time), "1", ...args],
        abandon() {
          // An acknowledged turn may stay; any other is reported as failed, and must not reach the next turn.
          if (begun !== true) void retries.add(tip, () => deleteTurn(owner, tip));
        },
      });
    });
  }

  async function end(turn: StoredTurn): Promise<boolean> {
    return (await access.write(scripts.end, toParts(turn))) === 1;
  }

  return {
    async commit(commit) {
      const parts = commit.turns.map(toParts);
      const reply = await store(commit, parts).catch((thrown) => rejectDuplicate(thrown, commit.turns));
      if (reply === 0) return false;
      const [changes, ids] = toList(reply);
      const changed = toTexts(ids);
      const isCurrent = changed.length === 0 ? access.seeChanges(changes) : access.noteChange(changes, changed);
      for (const [index, turn] of commit.turns.entries()) {
        const written = parts[index];
        if (written === undefined || !isCurrent || changed.includes(turn.id)) continue;
        recent.add(withoutTold(turn), sizeOfParts(written));
      }
      return true;
    },
    async begin(turn, key) {
      const time = now().getTime();
      const args = [String(time), ...toParts(turn), ...toKey(turn.owner, key, turn.id, time)];
      await access.write(scripts.begin, args).catch((thrown) => rejectDuplicate(thrown, [turn]));
    },
    async end(turn) {
      try {
        return await end(turn);
      } catch (thrown) {
        // Another gateway may know better how its own turn ended.
        if (peers.isOurs(nameOfRun(turn.id))) void retries.add(turn.id, () => end(turn));
        throw thrown;
      }
    },
    async endRunning(failure, endedAt, isAbandoned = () => true) {
      let count = 0;
      for (let number = "0"; ;) {
        // By number: a gateway that is just starting removes turns from the list too.
        const [last, page] = toList(await access.read(scripts.readRunning, number, pageSize));
        const running = toList(page).map(toTexts);
        if (running.length === 0) return count;
        for (const [id = "", owner = "", created] of running) {
          if (!isAbandoned({ id, createdAt: new Date(Number(created)) }) || (await peers.isTaken(nameOfRun(id))))
            continue;
          // Most are live, and their input may be long.
          const [, found] = toList(await access.read(scripts.findTurn, id, owner));
          // False: another gateway has ended it, or its session is being deleted.
          if (found !== undefined && (await end(toAbandoned(readTurn(found), failure, endedAt)))) count += 1;
        }
        number = String(last);
      }
    },
  };
}

const pageSize = "100";

/** Ids are ours, so one that exists already is our mistake too. */
export function rejectDuplicate(thrown: unknown, turns: readonly Pick<StoredTurn, "id">[]): never {
  if (codeOf(thrown) !== "KEPT") throw thrown;
  throw new Error(`${turns.map(({ id }) => id).join(" or ")} is already stored.`);
}
