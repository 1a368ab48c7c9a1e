/** Creates a value lazily: when it is first requested, then kept. After a failure, the next request tries again. */
export function makeOnce<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    if (made !== undefined) return made;
    made = make();
    made.catch(() => {
      made = undefined;
    });
    return made;
  };
}
