/** Walks trees outside of sessions in Redis little by little: nobody else is answered while a script runs. */
import type { Access } from "./access.ts";
import { maxWalked, toList, toTexts } from "./script.ts";
import * as scripts from "./scripts.ts";

interface TreePage {
  readonly ids: readonly string[];
  /** When the newest was created. */
  readonly newest: number;
  /** One of them is running. */
  readonly runs: boolean;
}

/** Turns of an owner, or of anybody, with their descendants, parents first. */
export async function* walkSessionless(
  access: Access,
  owner: string,
  from: readonly string[],
): AsyncGenerator<TreePage, void, void> {
  let front = from;
  while (front.length > 0) {
    const page = front.slice(0, maxWalked);
    const [ids, rest, newest, runs] = toList(await access.read(scripts.walkSessionless, owner, ...page));
    front = [...front.slice(maxWalked), ...toTexts(rest)];
    yield { ids: toTexts(ids), newest: Number(newest), runs: runs === 1 };
  }
}

/** The ids of all of them. */
export async function listSessionless(access: Access, owner: string, root: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { ids } of walkSessionless(access, owner, [root])) for (const id of ids) found.push(id);
  return found;
}
