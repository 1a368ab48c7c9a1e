/** Requests with an idempotency key: answered once, and told again to whoever repeats them. */
import type { InBackground } from "./background.ts";
import { GatewayError } from "../errors.ts";
import type { Event } from "../event.ts";
import type { BeginTurn, Caller, Reply } from "../gateway.ts";
import type { Item } from "../item.ts";
import { isKept } from "../keep.ts";
import type { Live, Lives } from "./lives.ts";
import { replayTurn, toAbout } from "../frame/replay.ts";
import type { IdempotencyKey, SessionStore, StoredTurn } from "../store.ts";
import type { Ask } from "../turn.ts";

export interface KeyedParts {
  readonly store: SessionStore;
  readonly lives: Lives;
  readonly begin: BeginTurn;
  readonly inBackground: InBackground;
  /** For how long a key is good. */
  readonly keyMs: number;
  readonly now: () => Date;
}

/** The answer to the first request with this key, from its beginning: running, or kept. */
export type Once = (ask: Ask<Item>, caller: Caller, key: IdempotencyKey) => Promise<Reply>;

export function createKeyed(parts: KeyedParts): Once {
  const { store, lives, begin, inBackground, keyMs, now } = parts;

  async function findKept(owner: string, { key, fingerprint }: IdempotencyKey): Promise<StoredTurn | undefined> {
    const kept = await store.findKey(owner, key);
    const turn = kept && (await store.findTurn(owner, kept.turnId));
    if (kept === undefined || turn === undefined || now().getTime() - turn.createdAt.getTime() >= keyMs)
      return undefined;
    if (kept.fingerprint !== fingerprint) throw conflict();
    return turn;
  }

  return async (ask, caller, key) => {
    const { owner, turnId, memo } = caller;
    const keyName = JSON.stringify([owner, key.key]);
    let running = lives.findKey(keyName);
    while (running !== undefined && running.fingerprint !== key.fingerprint) {
      await refuseUnlessItFails(running);
      running = lives.findKey(keyName);
    }
    // Nothing is awaited from here to the start, so that of many at once only one begins.
    if (running !== undefined) return attach(running, caller, true);
    let isRepeated = false;
    const life = { owner, turnId, input: ask.items, memo, background: false, fingerprint: key.fingerprint };
    const live = lives.start(life, keyName, async (signal, keepsInMemory) => {
      const kept = await findKept(owner, key);
      isRepeated = kept !== undefined;
      const known = kept && lives.find(owner, kept.id);
      if (known !== undefined) return attach(known, { signal }, true);
      if (kept !== undefined) return { about: toAbout(kept), events: tellAgain(kept) };
      if (ask.background === true) return inBackground(ask, { ...caller, signal });
      if (!isKept(ask, caller, false)) keepsInMemory();
      return begin(ask, { ...caller, signal });
    });
    await live.turn.placed;
    return attach(live, caller, isRepeated);
  };
}

/** Another request with the same key stands in the way, unless it turns out to be the one that is wrong. */
async function refuseUnlessItFails({ turn }: Live): Promise<void> {
  const isPlaced = await turn.placed.then(
    () => true,
    () => false,
  );
  if (isPlaced) throw conflict();
  await turn.ended;
}

async function attach({ turn }: Live, { signal }: Pick<Caller, "signal">, isRepeated: boolean): Promise<Reply> {
  return { about: await turn.placed, events: turn.follow(signal), isRepeated };
}

/** So many events are told at a time, so that a slow reader does not hold all of a long answer's text. */
const eventsAtOnce = 500;

async function* tellAgain(turn: StoredTurn): AsyncGenerator<readonly Event[], void, void> {
  const events = replayTurn(turn);
  for (let at = 0; at < events.length; at += eventsAtOnce) yield events.slice(at, at + eventsAtOnce);
}

function conflict(): GatewayError {
  return new GatewayError(
    "idempotency_conflict",
    "This Idempotency-Key was used for another request. Repeat the same request with it, or choose a new key.",
    { param: "Idempotency-Key" },
  );
}
