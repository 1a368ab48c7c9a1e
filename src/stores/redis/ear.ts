/** Hears what is said on channels, on a connection of its own that comes again by itself. */
import type { Place } from "./address.ts";
import { type Client, type MakeClient, toPauseMs } from "./client.ts";

export interface Ear {
  /** What is said while there is no connection is missed. */
  listen(channel: string, listener: Listener): Promise<void>;
  /**
   * Any node of a cluster tells what is said on all of them; but the one with the store is surely there. Called with each of its
   * connections: where one was lost without a word, so was this one, and who only listens would not know.
   */
  moveTo(place: Place): void;
  close(): void;
}

type Listener = (message: string) => void;

export function createEar(makeClient: MakeClient): Ear {
  const listeners = new Map<string, Listener>();
  let place: Place | undefined;
  let client: Client | undefined;
  let opening: Promise<void> | undefined;

  async function open(at: Place): Promise<void> {
    client?.destroy();
    const made = makeClient(at, toPauseMs);
    client = made;
    try {
      await made.connect();
      for (const [channel, listener] of listeners) await made.subscribe(channel, listener);
    } catch (thrown) {
      // Whoever was left meanwhile is missed by nobody: the next one listens.
      if (client === made) throw thrown;
    }
  }

  return {
    async listen(channel, listener) {
      listeners.set(channel, listener);
      if (place !== undefined) opening ??= open(place);
      await opening;
      // If it has just been moved, the new one will.
      if (client?.isReady === true) await client.subscribe(channel, listener);
    },
    moveTo(to) {
      place = to;
      if (opening === undefined) return;
      // Nobody waits for it, and those who wait for a word look themselves now and then.
      opening = open(to);
      opening.catch(() => {});
    },
    close() {
      client?.destroy();
      client = undefined;
    },
  };
}
