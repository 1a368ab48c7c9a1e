/** Detects when nobody listens to a stream any more: a generator that was never pulled runs no `finally`. */

/**
 * `leave` is called when nobody wants more events, even if none was ever pulled; `end` once the stream has then ended.
 */
export function leaveOnReturn<Events extends AsyncGenerator<unknown, void, void>>(
  events: Events,
  leave: () => void,
  end?: () => void,
): Events {
  const stop = events.return.bind(events);
  const value: Events["return"] = (given) => {
    leave();
    return stop(given).finally(end);
  };
  // Not `events.return = …`: an object that is given a function so, and all that it knows, outlives every collection of young garbage.
  return Object.defineProperty(events, "return", { value });
}
