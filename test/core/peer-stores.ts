/** Gateways on one memory store that know of each other, as those of a shared store do. */
import { setImmediate as nextTick } from "node:timers/promises";
import type { Event } from "../../src/core/event.ts";
import type { Peers } from "../../src/core/peers.ts";
import { createQueue } from "../../src/core/place/queue.ts";
import type { SessionStore } from "../../src/core/store.ts";
import { createMemoryStore } from "../stores/memory.ts";

export interface PeerStore {
  readonly store: ReturnType<typeof createMemoryStore>;
  /** Releases its names at once, and receives nothing more. */
  die(): void;
}

export function createPeerStores(): () => PeerStore {
  const store = createMemoryStore();
  const queue = createQueue(() => 1_000);
  const listeners = new Set<(turnId: string) => void>();
  const said = new Map<string, Event[]>();
  return () => {
    const held = new Set<() => void>();
    let listener: (turnId: string) => void = () => {};
    const peers: Peers = {
      async enter(name, signal, stands) {
        const leave = await queue.enter(name, signal, stands);
        held.add(leave);
        return leave;
      },
      isTaken: async (name) => !queue.isIdle(name),
      publish(name, events) {
        // As it would be transmitted.
        said.set(name, [...(said.get(name) ?? []), ...JSON.parse(JSON.stringify(events))]);
      },
      async *subscribe(name, signal) {
        for (let count = 0; ; await nextTick(undefined, { signal })) {
          const isOver = queue.isIdle(name);
          const news = said.get(name)?.slice(count) ?? [];
          count += news.length;
          if (news.length > 0) yield news;
          if (isOver) return;
        }
      },
      async cancel(name, turnId) {
        for (const onCancelled of listeners) onCancelled(turnId);
        const leave = await queue.enter(name, new AbortController().signal);
        leave();
      },
      shareUse: () => () => {},
      onCancel(onCancelled) {
        listener = onCancelled;
        listeners.add(onCancelled);
      },
    };
    const shared: SessionStore = { ...store, peers };
    return {
      store: { ...store, ...shared },
      die() {
        listeners.delete(listener);
        for (const leave of held) leave();
      },
    };
  };
}
