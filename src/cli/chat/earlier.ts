/** What was said last in a session, to remind a person who continues it. */
import { fileOfStore } from "../../config/store.ts";
import type { Item } from "../../core/item.ts";
import type { Session, StoredTurn } from "../../core/store.ts";
import { storeExists } from "../sessions/open.ts";
import { describeItem, toPlain } from "../sessions/text.ts";

/** In the configured store; undefined if nothing was said there, or if it cannot be read. */
export async function readEarlier(url: string, owner: string, hint: string): Promise<string | undefined> {
  try {
    if (url === "memory:" || !(await storeExists(url, fileOfStore(url)))) return undefined;
    const { openStore } = await import("../../stores/index.ts");
    const store = await openStore(url);
    try {
      const session = await store.findSession(owner, hint);
      const turn = session?.tip === undefined ? undefined : await store.findTurn(owner, session.tip);
      return session && turn && describe(session, turn);
    } finally {
      await store.close();
    }
  } catch {
    // Only a reminder: a store that a gateway cannot use either is reported by that.
    return undefined;
  }
}

function describe({ resends }: Session, { input, output }: StoredTurn): string {
  const last = `"${lastOf(input)}", answered "${lastOf(output)}"`;
  return resends
    ? `It begins anew, as its clients resend their history. Last was ${last}.`
    : `It continues after ${last}.`;
}

function lastOf(items: readonly Item[]): string {
  const item = items.findLast(({ type }) => type === "message") ?? items.at(-1);
  const [, text = ""] = item === undefined ? [] : describeItem(item);
  const line = toPlain(text.replaceAll(/\s+/g, " ").trim());
  // No half characters.
  return line.length > maxShown ? `${line.slice(0, maxShown).replace(/[\uD800-\uDBFF]$/, "")}…` : line;
}

const maxShown = 60;
