/** A turn that outlives its caller: what the model says is kept as deltas, and every reader frames the same events of them. */
import { callerLeft, type GatewayError } from "./errors.ts";
import type { Delta, Event } from "./event.ts";
import { createFrame } from "./frame.ts";
import type { Heading, Listener, Recorder, Said } from "./way.ts";

export interface Live {
  readonly key: string;
  readonly owner: string;
  readonly isBackground: boolean;
  /** Undefined until it has its place. */
  readonly heading: Heading | undefined;
  readonly isWaiting: boolean;
  /** When somebody last listened to it. */
  readonly heardAt: number;
  /** Resolves when it has its place; rejects with what kept it from one. */
  readonly placed: Promise<Heading>;
  /** Resolves when it is over, however it went. */
  readonly ended: Promise<Ended>;
  /** Somebody asks how it is. */
  look(): void;
  /** Tells it from its beginning. Throws what went wrong before its first word, and if the reader leaves. */
  follow(listener: Listener, signal: AbortSignal, isRepeated: boolean): Promise<Said>;
  stop(reason: GatewayError): void;
}

export interface Ended {
  readonly heading: Heading | undefined;
  readonly answer: Said["answer"] | undefined;
  readonly failure: unknown;
  /** Whoever asked for it hears its end. */
  readonly isAttended: boolean;
}

interface LiveParts {
  readonly key: string;
  readonly owner: string;
  readonly isBackground: boolean;
  readonly now: () => number;
  /** Called when it has its place, before anybody is told. */
  readonly announce: (heading: Heading, echo: string | undefined) => Promise<void>;
  readonly record: (deltas: readonly Delta[]) => ReturnType<Recorder["record"]>;
  readonly run: (listener: Listener, signal: AbortSignal, recorder: Recorder) => Promise<Said>;
}

export function startLive({ key, owner, isBackground, now, announce, record, run }: LiveParts): Live {
  const batches: (readonly Delta[])[] = [];
  const control = new AbortController();
  const placed = Promise.withResolvers<Heading>();
  const begun = Promise.withResolvers<void>();
  for (const { promise } of [placed, begun]) promise.catch(() => {});
  let heading: Heading | undefined;
  let isWaiting = false;
  let hasBegun = false;
  let said: Said | undefined;
  let failure: unknown;
  let followers = 0;
  /** Those of them who asked for it first. */
  let attending = 0;
  let heardAt = now();
  let sleepers: (() => void)[] = [];

  function wake(): void {
    const woken = sleepers;
    sleepers = [];
    for (const resume of woken) resume();
  }

  const recorder: Recorder = {
    async place(given, waits, { echo }) {
      await announce(given, echo);
      heading = given;
      isWaiting = waits;
      placed.resolve(given);
    },
    take(deltas) {
      batches.push(deltas);
      wake();
    },
    record: () => record(batches.flat()),
  };
  const writer: Listener = {
    begin(given) {
      heading = given;
      isWaiting = false;
      hasBegun = true;
      begun.resolve();
      wake();
    },
    tell: () => undefined,
  };

  async function live(): Promise<Ended> {
    try {
      said = await run(writer, control.signal, recorder);
    } catch (thrown) {
      failure = thrown;
      placed.reject(thrown);
      begun.reject(thrown);
    }
    wake();
    return { heading, answer: said?.answer, failure, isAttended: attending > 0 };
  }
  const ended = live();

  return {
    key,
    owner,
    isBackground,
    get heading() {
      return heading;
    },
    get isWaiting() {
      return isWaiting;
    },
    get heardAt() {
      return followers > 0 ? now() : heardAt;
    },
    look() {
      heardAt = now();
    },
    placed: placed.promise,
    ended,
    async follow(listener, signal, isRepeated) {
      followers += 1;
      if (!isRepeated) attending += 1;
      const left = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(callerLeft()), { once: true });
      });
      left.catch(() => {});
      const news = (): Promise<void> => Promise.race([new Promise<void>((resume) => sleepers.push(resume)), left]);
      placed.promise.then(listener.place, () => {});
      try {
        await Promise.race([isBackground ? placed.promise : begun.promise, left]);
        if (heading === undefined) throw failure;
        listener.begin(heading, isRepeated);
        await tellAll(listener, news);
        if (said === undefined) throw failure;
        return { heading, answer: said.answer, isRepeated };
      } finally {
        followers -= 1;
        if (!isRepeated) attending -= 1;
        heardAt = now();
      }
    },
    stop: (reason) => control.abort(reason),
  };

  async function tellAll(listener: Listener, news: () => Promise<void>): Promise<void> {
    const frame = createFrame(key);
    let events: Event[] = isBackground ? [{ type: "turn-queued" }] : [{ type: "turn-start" }];
    let hasStarted = !isBackground;
    let at = 0;
    const tell = async (): Promise<void> => {
      const told = events;
      events = [];
      if (told.length > 0) await listener.tell(told);
    };
    for (;;) {
      if (!hasStarted && (hasBegun || said !== undefined)) {
        events.push({ type: "turn-start" });
        hasStarted = true;
      }
      for (const batch of batches.slice(at)) frame.accept(batch, events);
      at = batches.length;
      await tell();
      if (at < batches.length) continue;
      if (said !== undefined || failure !== undefined) break;
      await news();
    }
    if (said === undefined) return;
    const { answer } = said;
    frame.end(answer.error, answer.endedAt, events);
    events.push({ type: "turn-end", answer });
    await tell();
  }
}
