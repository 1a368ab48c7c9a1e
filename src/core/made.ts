/** What takes a while to make: made when it is first asked for, then kept. What failed is made anew for whoever asks next. */
export function makeOnce<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    if (made !== undefined) return made;
    const making = make();
    making.catch(() => {
      if (made === making) made = undefined;
    });
    return (made = making);
  };
}
