/** A turn of another process as if it ran here: its deltas are framed anew, and its end is what was kept of it. */
import { GatewayError } from "./errors.ts";
import type { Event } from "./event.ts";
import { createFrame } from "./frame.ts";
import { Live } from "./live.ts";
import { toRecalled } from "./recalled.ts";
import { retell } from "./retell.ts";
import type { Far, Placed } from "./store.ts";
import type { Listener, Recorder, Said } from "./way.ts";

export function toLive(far: Far, now: () => number): Live {
  return new Live({
    key: far.key,
    owner: far.owner,
    isBackground: far.placed?.isBackground ?? false,
    now,
    announce: async () => {},
    record: neverKept,
    run: (listener, signal, recorder) => hear(far, listener, signal, recorder),
  });
}

async function hear(far: Far, listener: Listener, signal: AbortSignal, recorder: Recorder): Promise<Said> {
  const cancel = (): void => void far.cancel();
  signal.addEventListener("abort", cancel);
  const frame = createFrame(far.key);
  const events: Event[] = [{ type: "turn-start" }];
  let hasBegun = false;
  let told = 0;
  try {
    if (far.placed !== undefined) await place(recorder, far.placed);
    for (let all = await far.next(); all !== undefined; all = await far.next()) {
      for (const { placed, heading, deltas = [] } of all) {
        if (placed !== undefined) await place(recorder, placed);
        if (heading !== undefined) begin(heading);
        frame.accept(deltas, events);
      }
      if (hasBegun) tell();
    }
  } finally {
    signal.removeEventListener("abort", cancel);
  }
  const stored = await far.stored();
  if (stored === undefined) throw new TurnLost(hasBegun);
  const { heading, answer } = toRecalled(stored);
  begin(heading);
  const deltas = stored.record?.deltas;
  if (deltas === undefined) {
    // Its process has died: what it had said ends here.
    frame.end(answer.error, answer.endedAt, events);
    void listener.tell([...events, { type: "turn-end", answer }]);
  } else void listener.tell(retell(far.key, answer, deltas, false).slice(told));
  return { heading, answer };

  function begin(heading: Placed["heading"]): void {
    if (!hasBegun) listener.begin(heading);
    hasBegun = true;
  }

  function tell(): void {
    told += events.length;
    void listener.tell(events.splice(0));
  }
}

const place = (recorder: Recorder, { heading, waits, echo, items }: Placed): Promise<void> =>
  recorder.place(heading, waits, { echo, items });

function neverKept(): never {
  throw new Error("The process in which a turn runs keeps it.");
}

/** Nothing was kept of a turn with a key: it failed, or its process died. */
export class TurnLost extends GatewayError {
  /** Whoever waited for it heard something of it. */
  readonly wasHeard: boolean;

  constructor(wasHeard: boolean) {
    super("interrupted", "The request with this key failed in another process of the gateway. Send it again.");
    this.wasHeard = wasHeard;
  }
}
