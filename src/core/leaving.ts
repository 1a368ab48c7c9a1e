/** Tells when nobody hears a stream any more: a generator that was never pulled runs none of its own `finally`. */

/** `leave` is called when nobody wants more of the events, even if none was ever pulled; `finish` when they have ended for it. */
export function leaveOnReturn<Events extends AsyncGenerator<unknown, void, void>>(
  events: Events,
  leave: () => void,
  finish: () => void = () => {},
): Events {
  const end = events.return.bind(events);
  events.return = (value) => {
    leave();
    return end(value).finally(finish);
  };
  return events;
}
