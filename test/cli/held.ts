/** A model's server whose answers say its name, and that holds what says `wait` until it is let go. */
import type { IncomingMessage } from "node:http";
import { begin, messagesOf, readAll, replyWith, startServer } from "../harness/client.ts";
import type { Scope } from "../harness/house.ts";
import { beginEvents, chunk, type Received, writeEvent } from "../harness/upstream.ts";

export interface Held {
  readonly adapters: Record<string, Record<string, unknown>>;
  readonly received: readonly Received[];
  /** Ends every answer that waits. */
  release(): void;
}

export async function startHeld(scope: Scope, name: string): Promise<Held> {
  const server = await startServer(scope);
  const answer = replyWith((received) => ({ content: `${name}: ${messagesOf(received).at(-1)?.content}` }));
  const held: (() => void)[] = [];
  server.script = (received, response) => {
    if (messagesOf(received).at(-1)?.content !== "wait") return answer(received, response);
    beginEvents(response);
    writeEvent(response, chunk({ role: "assistant", content: `${name}: ` }));
    held.push(() => {
      for (const event of [chunk({ content: "waited" }), chunk({}, "stop"), "[DONE]"]) writeEvent(response, event);
      response.end();
    });
  };
  const release = () => held.splice(0).forEach((each) => each());
  return { adapters: { [name]: server.adapters["model"]! }, received: server.received, release };
}

/** Begins a stream that is held, and returns its rest once its first words are there. */
export async function beginHeld(address: string, on: "chat" | "responses", token?: string) {
  const wish = { on, say: "wait", stream: true, ...(token !== undefined && { token }) } as const;
  const response: IncomingMessage = await begin(address, wish);
  let isOver = false;
  const all = readAll(response).finally(() => (isOver = true));
  return { status: response.statusCode, isOver: () => isOver, all };
}
