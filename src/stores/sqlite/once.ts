/** Looks once for all who ask in one round of the event loop; who asks after a failure finds out anew. */
export function onceForAll(look: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    look();
    isDone = true;
    setImmediate(() => (isDone = false));
  };
}
