/** Requests with an idempotency key: answered once, and replayed to whoever repeats them. */
import type { BackgroundParts, InBackground } from "./background.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Events } from "../event.ts";
import type { AskedKey, Caller, Reply, Resumption } from "../gateway.ts";
import type { Item } from "../item.ts";
import { beginUnthreaded, endFailed, type TurnRecord } from "../turn-record.ts";
import { type Follow, join, type Source } from "./live.ts";
import type { Joinable, LiveEntry } from "./live-turns.ts";
import { isExact, replayInBatches, toAbout } from "../frame/replay.ts";
import type { About } from "../ports.ts";
import type { StoredTurn } from "../store.ts";
import type { Ask } from "../turn.ts";

export interface KeyedParts extends BackgroundParts {
  readonly inBackground: InBackground;
  /** Looks up the items that a request refers to. */
  readonly resolve: (ask: Ask, owner: string) => Promise<Ask<Item>>;
  /** How long a key is valid. */
  readonly keyMs: () => number;
}

/** The answer to the first request with this key, from the beginning: running or stored. */
export type Once = (ask: Ask, caller: Caller, key: AskedKey) => Promise<Reply>;

export function createKeyed(parts: KeyedParts): Once {
  const { store, liveTurns, remoteTurns, begin, inBackground, resolve, keyMs, now } = parts;

  /** The existing answer: stored, or still running, in the background or on another gateway. */
  async function findAnswer(ask: Ask, owner: string, key: AskedKey): Promise<Found | undefined> {
    const known = await store.findKey(owner, key.key);
    const stored = known && (await store.findTurn(owner, known.turnId));
    if (known === undefined || stored === undefined) return undefined;
    if (now().getTime() - stored.createdAt.getTime() >= keyMs()) return undefined;
    const live = liveTurns.find(owner, stored.id);
    const turn = live === undefined ? await remoteTurns.refresh(stored) : stored;
    const runs = live !== undefined || (turn !== undefined && remoteTurns.isRunning(turn));
    if (turn === undefined || (!runs && isFailed(turn))) return undefined;
    if (known.fingerprint !== key.fingerprint) throw conflict(key);
    if (live !== undefined) return { about: await live.turn.placed, follow: live.turn.follow, isExact: true };
    const follow: Follow = (signal) => remoteTurns.follow(turn, signal);
    // Its key is that of the same request.
    if (runs) return { about: toAbout(turn), follow, isExact: isPublishable(ask) };
    return { about: toAbout(turn), follow: () => replayInBatches(turn), isExact: isExact(turn) };
  }

  /** Continues the answer that the caller has the beginning of; no other may be appended to it. */
  async function resume(
    running: Joinable | undefined,
    ask: Ask,
    { owner, signal }: Caller,
    key: AskedKey,
    resumption: Resumption,
  ): Promise<Reply> {
    const found = await findAnswer(ask, owner, key);
    const turn = found ?? (running && { about: await running.turn.placed, follow: running.turn.follow, isExact: true });
    if (turn?.isExact !== true || !resumption.isOf(turn.about.id)) throw nothingToResume(key, resumption);
    return { about: turn.about, events: turn.follow(signal), isRepeated: true };
  }

  /** Begins a turn that other gateways find by its key and follow while it runs. `names` are those it holds there. */
  async function beginPublished(ask: Ask<Item>, caller: Caller, key: AskedKey, names: Names): Promise<Source> {
    const { owner, turnId, memo, signal } = caller;
    const { about, events } = await begin(ask, caller, "by key");
    const turnRecord: TurnRecord = { owner, about, memo, background: false, isReplayable: true };
    const isPublished = isPublishable(ask);

    async function* publishEvents(): Events {
      try {
        for await (const batch of events) {
          if (isPublished) remoteTurns.publish(turnId, batch);
          yield batch;
        }
      } catch (thrown) {
        await endFailed(store, turnRecord, ask.items, toGatewayError(thrown), now());
        throw thrown;
      }
    }

    try {
      names.push(await remoteTurns.announce(turnId, signal));
      await beginUnthreaded(store, turnRecord, ask.items, key, now);
      // Whoever waited for the key now finds the turn by it.
      names.shift()?.();
    } catch (thrown) {
      await events.return();
      throw thrown;
    }
    return { about, events: publishEvents() };
  }

  return async (ask, caller, key) => {
    const { owner, turnId, memo } = caller;
    const { fingerprint } = key;
    const keyName = JSON.stringify([owner, key.key]);
    let running = liveTurns.findKey(keyName);
    while (running !== undefined && running.fingerprint !== fingerprint) {
      await refuseUnlessItFails(running, key);
      running = liveTurns.findKey(keyName);
    }
    if (caller.resumes !== undefined) return resume(running, ask, caller, key, caller.resumes);
    // Nothing is awaited from here to the start, so that of many at once only one begins.
    if (running !== undefined) return { ...(await join(running.turn, caller.signal)), isRepeated: true };
    let isRepeated = false;
    let input: readonly Item[] = [];
    // With a key, everything is stored unless its caller forbids it.
    const isOnlyInMemory = ask.keep === "no";
    const entry = { owner, turnId, input: () => input, memo, background: false, isOnlyInMemory, fingerprint };
    const names: Names = [];
    let background: LiveEntry | undefined;
    const live = liveTurns.start(entry, keyName, async (signal) => {
      // Another gateway may be answering the same request: it is followed there, or its answer found when done.
      const known = remoteTurns.hasPeers ? await findAnswer(ask, owner, key) : undefined;
      if (known === undefined) names.push(await store.peers?.enter(`key ${keyName}`, signal));
      const found = known ?? (await findAnswer(ask, owner, key));
      isRepeated = found !== undefined;
      if (found !== undefined) return found;
      names.push(caller.stay?.());
      const resolved = await resolve(ask, owner);
      input = resolved.items;
      if (ask.background === true) {
        background = await inBackground(resolved, { ...caller, signal });
        return { about: await background.turn.placed, follow: background.turn.follow };
      }
      if (isOnlyInMemory || !remoteTurns.hasPeers) return begin(resolved, { ...caller, signal });
      return beginPublished(resolved, { ...caller, signal }, key, names);
    });
    void live.turn.ended.then(() => names.forEach((leave) => leave?.()));
    if (ask.background !== true) return { ...(await live.join(caller.signal)), isRepeated };
    // The keyed turn only follows the background turn, and only the latter's end counts.
    await live.turn.placed;
    return { ...(await (background ?? live).join(caller.signal, ask.stream)), isRepeated };
  };
}

/** What releases its names, that of its key first, and its slot. */
type Names = ((() => void) | undefined)[];

interface Found {
  readonly about: About;
  readonly follow: Follow;
  readonly isExact: boolean;
}

/** Several answers told at once cannot be resumed in the middle: other gateways get them when they are over. */
function isPublishable({ settings: { choices = 1 } }: Ask): boolean {
  return choices === 1;
}

/** Repeating a request whose turn failed, or was left behind, tries it again; a cancelled one stays cancelled. */
function isFailed({ status }: StoredTurn): boolean {
  return status === "failed" || status === "running";
}

/** Another request with the same key is a conflict, unless that one fails before it has a place. */
async function refuseUnlessItFails({ turn }: Joinable, key: AskedKey): Promise<void> {
  const isPlaced = await turn.placed.then(
    () => true,
    () => false,
  );
  if (isPlaced) throw conflict(key);
  await turn.ended;
}

function conflict({ param }: AskedKey): GatewayError {
  return new GatewayError(
    "idempotency_conflict",
    `This ${param} was used for another request. Repeat the same request with it, or choose a new key.`,
    { param },
  );
}

function nothingToResume(key: AskedKey, { param }: Resumption): GatewayError {
  return new GatewayError(
    "events_expired",
    `The stream of this ${key.param} can no longer be resumed: it failed, or is too old. Send the request without '${param}' to get its answer from the beginning.`,
    { param },
  );
}
