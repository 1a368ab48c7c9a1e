/** Items that a caller adds to a conversation though no model is asked about them: they hang below its tip, like a turn. */
import { markTurn } from "./history.ts";
import type { Item } from "./item.ts";
import type { Lines } from "./lines.ts";
import { pair, type Step } from "./pair.ts";
import type { Node } from "./place.ts";
import { resolveReferences } from "./references.ts";
import type { Commit, Conversation, Conversations, Metadata, Store } from "./store.ts";
import type { Ports } from "./way.ts";

export interface AdditionPorts extends Pick<Ports, "now" | "hash" | "maxWaiting"> {
  readonly store: Store & Pick<Conversations, "createConversation" | "append">;
  readonly newKey: () => string;
}

export type Additions = ReturnType<typeof createAdditions>;

export function createAdditions({ store, now, hash, newKey, maxWaiting }: AdditionPorts, lines: Lines) {
  return {
    /** A conversation, with what was said in it before. */
    async create(owner: string, metadata: Metadata, given: readonly Item[]): Promise<Conversation> {
      const items = await check(owner, given, []);
      const id = `conv_${newKey().padEnd(48, "0")}`;
      const conversation = { id, createdAt: now(), metadata };
      const first = items.length === 0 ? undefined : toCommit(owner, id, items, undefined);
      await store.createConversation(owner, conversation, first);
      return conversation;
    },
    /** The items as they are kept, once no turn of the conversation runs any more. Undefined: there is no such conversation. */
    async add(owner: string, id: string, given: readonly Item[], signal: AbortSignal) {
      const line = lines.enter(id, "", maxWaiting(), signal);
      try {
        await line.before;
        const { session } = await store.find({ ...anything, owner, session: id });
        if (session === undefined) return undefined;
        const { tip } = session;
        const path = tip === undefined ? [] : await store.path(tip);
        const items = await check(owner, given, path);
        if (items.length === 0) return [];
        const commit = toCommit(owner, id, items, tip);
        if (!(await store.append(commit))) return undefined;
        return (await store.turn(owner, commit.key))?.input;
      } finally {
        line.leave();
      }
    },
  };

  /** Their references found, and every output's call before it. */
  async function check(owner: string, given: readonly Item[], path: readonly Step[]): Promise<readonly Item[]> {
    const { items } = await resolveReferences(store, owner, { items: given, itemsParam });
    const before = path.flatMap(({ input, answer }) => input.concat(answer));
    pair(before.concat(items), { itemsParam, isNamed: false, path });
    return items;
  }

  function toCommit(owner: string, session: string, input: readonly Item[], tip: Node | undefined): Commit {
    const at = now();
    return {
      owner,
      session,
      key: newKey(),
      createdAt: at,
      parent: tip,
      marks: markTurn(tip?.digest ?? "", input, [], hash),
      remembers: true,
      model: "",
      input,
      answer: { status: "completed", finish: "stop", items: [], notes: {}, endedAt: at },
      echo: undefined,
      leads: true,
      tip: tip?.turn,
      learns: false,
      isLoose: false,
    };
  }
}

const itemsParam = "items";
const anything = { named: undefined, shown: [], prefilled: undefined, calls: [] };
