/** A session is a tree of turns: its threads, each from a root to a turn that nothing follows. */

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
