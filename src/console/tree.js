/** A session as a tree of turns: its threads, each from a root to a tip, and the tool outputs that belong to calls. */
/** @import { Item, ToolOutput } from "../core/item.ts" */

/**
 * @typedef {{ readonly id: string, readonly parent?: string | undefined }} Node
 */

/**
 * The turns that nothing follows, newest first, but the session's own tip before them.
 * @template {Node} Turn
 * @param {readonly Turn[]} turns in the order they were stored
 * @param {string | undefined} tip
 * @returns {readonly Turn[]}
 */
export function tipsOf(turns, tip) {
  const parents = new Set(turns.map(({ parent }) => parent));
  const tips = turns.filter(({ id }) => !parents.has(id) && id !== tip).toReversed();
  const current = turns.find(({ id }) => id === tip);
  return current === undefined ? tips : [current, ...tips];
}

/**
 * The turns from a root to this one.
 * @template {Node} Turn
 * @param {readonly Turn[]} turns
 * @param {string} tip
 * @returns {readonly Turn[]}
 */
export function threadOf(turns, tip) {
  const byId = new Map(turns.map((turn) => [turn.id, turn]));
  /** @type {Turn[]} */
  const thread = [];
  let turn = byId.get(tip);
  while (turn !== undefined) {
    thread.push(turn);
    // An imported archive may have cycles.
    byId.delete(turn.id);
    turn = turn.parent === undefined ? undefined : byId.get(turn.parent);
  }
  return thread.toReversed();
}

/**
 * The output of each call. It belongs to the last call before it with its id, as models reuse ids.
 * @param {readonly Item[]} items
 * @returns {ReadonlyMap<Item, ToolOutput>}
 */
export function pairOutputs(items) {
  /** @type {Map<string, Item>} */
  const calls = new Map();
  /** @type {Map<Item, ToolOutput>} */
  const outputs = new Map();
  for (const item of items) {
    if (item.type === "tool-call") calls.set(item.callId, item);
    const call = item.type === "tool-output" ? calls.get(item.callId) : undefined;
    if (call !== undefined && item.type === "tool-output") outputs.set(call, item);
  }
  return outputs;
}
