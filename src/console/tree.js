/** A session is a tree of turns: its threads, each from a root to a turn that nothing follows, and what belongs together in one. */
/** @import { Item, ToolOutput } from "../core/item.ts" */

/**
 * @typedef {{ readonly id: string, readonly parent?: string | undefined }} Node
 */

/**
 * The turns that nothing follows, the newest first; the session's own tip before them.
 * @template {Node} Turn
 * @param {readonly Turn[]} turns in the order in which they were kept
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
    // Whatever an archive has brought, no turn comes twice.
    byId.delete(turn.id);
    turn = turn.parent === undefined ? undefined : byId.get(turn.parent);
  }
  return thread.toReversed();
}

/**
 * The output of each call. An output is of the call just before it under its id, as models use ids again.
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
