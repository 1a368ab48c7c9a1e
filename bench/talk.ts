/** Makes earlier conversations: threads in a store, and what their clients remember of them. */
import { hash } from "node:crypto";
import type { Item } from "../src/core/item.ts";
import { createChain } from "../src/core/place/chain.ts";
import { extend, noPath, type Path } from "../src/core/place/path.ts";
import type { SessionStore, StoredTurn } from "../src/core/store.ts";
import { createIds } from "../src/ids.ts";

export interface Talk {
  readonly user: string;
  /** Everything that was said, as its client remembers it. */
  readonly messages: Message[];
  /** What was said before the gateway started. */
  readonly path: Path;
}

export interface Message {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** Stores sessions of `earlier` turns each, one commit per turn, as a gateway would have done. */
export async function tellBefore(store: SessionStore, earlier: number, sessions: number): Promise<readonly Talk[]> {
  const talks: Talk[] = [];
  for (let index = 0; index < sessions; index += 1) {
    const user = newId("resp");
    const session = newId("conv");
    const commits: Promise<boolean>[] = [];
    let path = noPath;
    for (let count = 0; count < earlier; count += 1) {
      const turn = makeTurn(session, path, count);
      const move = { id: session, hint: `user:${user}`, expectedTip: path.tip?.id, otherwise: "refuse" } as const;
      commits.push(store.commit({ turns: [turn], session: { ...move, resends: false } }));
      path = extend(path, turn);
    }
    const kept = await Promise.all(commits);
    if (!kept.every(Boolean)) throw new Error("The store refused a turn of the history.");
    talks.push({ user, path, messages: path.track.talk.map(toMessage) });
  }
  return talks;
}

function makeTurn(session: string, path: Path, count: number): StoredTurn {
  const input: Item[] = [{ type: "message", role: "user", content: `Question ${count}. ${sentence}` }];
  const output: Item[] = [{ type: "message", role: "assistant", content: `Answer ${count}. ${sentence.repeat(2)}` }];
  return {
    id: newId("resp"),
    owner: "default",
    session,
    parent: path.tip?.id,
    createdAt: new Date(),
    model: "any",
    input,
    output,
    status: "completed",
    usage: undefined,
    ...chain.mark(session, path, input, output),
  };
}

function toMessage(item: Item): Message {
  if (item.type !== "message" || typeof item.content !== "string") throw new Error("Only words were told.");
  return { role: item.role === "user" ? "user" : "assistant", content: item.content };
}

export const sentence = "And so it goes on. ";

const newId = createIds(() => new Date());

function digest(text: string): string {
  return hash("sha256", text, "base64url").slice(0, 22);
}

const chain = createChain(digest);
