/** Detects when nobody listens to a stream any more: a generator that was never pulled runs no `finally`. */

/**
 * `leave` is called when nobody wants more events, even if none was ever pulled; `finish` once the stream has then
 * ended.
 */
export function leaveOnReturn<Events extends AsyncGenerator<unknown, void, void>>(
  events: Events,
  leave: () => void,
  finish: () => void = () => {},
): Events {
  const end = events.return.bind(events);
  const value: Events["return"] = (given) => {
    leave();
    return end(given).finally(finish);
  };
  // Not `events.return = …`: an object that is given a function so, and all that it knows, outlives every collection of young garbage.
  return Object.defineProperty(events, "return", { value });
}
