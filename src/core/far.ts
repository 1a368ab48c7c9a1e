/** A turn of another process, told here: its deltas are framed anew, and its end is read from the store. */
import { callerLeft, GatewayError } from "./errors.ts";
import type { Event } from "./event.ts";
import { createFrame } from "./frame.ts";
import type { Heading } from "./heading.ts";
import { inputId } from "./item.ts";
import type { Promised } from "./live.ts";
import { toRecalled } from "./recalled.ts";
import { retell } from "./retell.ts";
import type { Far, Placed } from "./store.ts";
import type { Listener, Said } from "./way.ts";

/** The turn, once it has its place. */
export async function toPromised(far: Far, signal: AbortSignal): Promise<Promised> {
  const { heading, waits, echo, items } = far.placed ?? (await readPlaced(far, signal));
  const input = items.map((item, index) => Object.assign({}, item, { id: inputId(item, far.key, index) }));
  return { heading, status: waits ? "queued" : "in_progress", echo, input };
}

async function readPlaced(far: Far, signal: AbortSignal): Promise<Placed> {
  for await (const all of far.news(signal)) for (const { placed } of all) if (placed !== undefined) return placed;
  throw signal.aborted ? callerLeft() : new TurnLost();
}

/** Resolves when it is over. */
export async function outlast(far: Far, signal: AbortSignal): Promise<void> {
  for await (const _ of far.news(signal));
}

/** Tells it from its beginning. Throws if it fails before its first word, or if the reader leaves. */
export async function followFar(
  far: Far,
  listener: Listener,
  signal: AbortSignal,
  isRepeated: boolean,
  now: () => number,
): Promise<Said> {
  const frame = createFrame(far.key);
  const events: Event[] = [];
  let told = 0;
  let begun: Heading | undefined;
  let hasStarted = false;

  function begin(heading: Heading): void {
    if (begun === undefined) listener.begin(heading, isRepeated);
    begun = heading;
  }

  function start(): void {
    if (!hasStarted) events.push({ type: "turn-start" });
    hasStarted = true;
  }

  async function tell(): Promise<void> {
    const news = events.slice(told);
    told = events.length;
    if (news.length > 0) await listener.tell(news);
  }

  for await (const all of far.news(signal)) {
    for (const { placed, heading, deltas = [] } of all) {
      if (placed !== undefined) {
        listener.place?.(placed.heading);
        // Readers of a background turn begin when it has its place, others at its first word.
        if (placed.isBackground) begin(placed.heading);
        if (placed.isBackground) events.push({ type: "turn-queued" });
      }
      if (heading !== undefined) {
        begin(heading);
        start();
      }
      frame.accept(deltas, events);
    }
    await tell();
  }
  if (signal.aborted) throw callerLeft();
  const stored = await far.stored();
  if (stored === undefined) return endLost();
  const { heading, answer } = toRecalled(stored);
  begin(heading);
  const { deltas, isBackground = false } = stored.record ?? {};
  if (deltas === undefined) {
    // Its process has died: what it had said ends here.
    start();
    frame.end(answer.error, answer.endedAt, events);
    events.push({ type: "turn-end", answer });
  } else events.push(...retell(far.key, answer, deltas, isBackground).slice(events.length));
  await tell();
  return { heading, answer, isRepeated };

  /** The turn failed or its process died, so nothing is stored. A reader that got nothing may be answered again. */
  async function endLost(): Promise<Said> {
    if (begun === undefined) throw new TurnLost();
    start();
    const answer = frame.end(new GatewayError("interrupted", lostMessage), now(), events);
    events.push({ type: "turn-end", answer });
    await tell();
    return { heading: begun, answer, isRepeated };
  }
}

const lostMessage = "The request with this key failed in another process of the gateway. Send it again.";

/** A keyed turn that is not stored, and whose reader got nothing. */
export class TurnLost extends GatewayError {
  constructor() {
    super("interrupted", lostMessage);
  }
}
