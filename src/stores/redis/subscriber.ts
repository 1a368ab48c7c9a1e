/** Listens to channels on a separate connection, which reconnects by itself. */
import type { Place } from "./address.ts";
import type { Client, MakeClient } from "./client.ts";

export interface Subscriber {
  /** From now on. What is published without a connection is missed. */
  listen(listeners: Listeners): Promise<void>;
  /**
   * Any node of a cluster tells what is published on all; but the one with the store surely exists. Called with each of
   * its connections: if one was lost silently, so was this one, and a mere listener would not notice.
   */
  moveTo(place: Place): void;
  close(): void;
}

/** What each channel's messages are given to. */
export type Listeners = Readonly<Record<string, (message: string) => void>>;

export function createSubscriber(makeClient: MakeClient): Subscriber {
  let listeners: Listeners | undefined;
  let place: Place | undefined;
  let client: Client | undefined;

  async function open(): Promise<void> {
    if (listeners === undefined || place === undefined) return;
    client?.destroy();
    const made = makeClient(place, true);
    client = made;
    try {
      await made.connect();
      for (const [channel, listener] of Object.entries(listeners)) await made.subscribe(channel, listener);
    } catch (thrown) {
      // If this client was replaced meanwhile, the next one listens.
      if (client === made) throw thrown;
    }
  }

  return {
    listen(wanted) {
      listeners = wanted;
      return open();
    },
    moveTo(to) {
      place = to;
      // Nobody waits for it, and those who wait for a message also poll now and then.
      open().catch(() => {});
    },
    close() {
      client?.destroy();
      client = undefined;
    },
  };
}
