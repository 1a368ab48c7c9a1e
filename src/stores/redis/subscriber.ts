/** Listens to channels on a separate connection, which reconnects by itself. */
import type { Place } from "./address.ts";
import { type Client, type MakeClient, toPauseMs } from "./client.ts";

export interface Subscriber {
  /** What is published without a connection is missed. */
  subscribe(channel: string, listener: Listener): Promise<void>;
  /**
   * Any node of a cluster tells what is published on all; but the one with the store surely exists. Called with each of
   * its connections: if one was lost silently, so was this one, and a mere listener would not notice.
   */
  moveTo(place: Place): void;
  close(): void;
}

type Listener = (message: string) => void;

export function createSubscriber(makeClient: MakeClient): Subscriber {
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
      // If this client was replaced meanwhile, the next one listens.
      if (client === made) throw thrown;
    }
  }

  return {
    async subscribe(channel, listener) {
      listeners.set(channel, listener);
      if (place !== undefined) opening ??= open(place);
      await opening;
      // If it just moved, the new one subscribes.
      if (client?.isReady === true) await client.subscribe(channel, listener);
    },
    moveTo(to) {
      place = to;
      if (opening === undefined) return;
      // Nobody waits for it, and those who wait for a message also poll now and then.
      opening = open(to);
      opening.catch(() => {});
    },
    close() {
      client?.destroy();
      client = undefined;
    },
  };
}
