/** A turn that outlives its caller: what the model says is kept as deltas, and whoever follows it hears it from its beginning. */
import { callerLeft, type GatewayError } from "./errors.ts";
import type { Delta, Event } from "./event.ts";
import type { Heading, Listener, Recorder, Said } from "./way.ts";

export interface Live {
  readonly key: string;
  readonly owner: string;
  readonly isBackground: boolean;
  /** Undefined until it has its place. */
  readonly heading: Heading | undefined;
  readonly echo: string | undefined;
  readonly isWaiting: boolean;
  /** When somebody last listened to it. */
  readonly heardAt: number;
  /** Resolves when it has its place. Throws what kept it from one. */
  placed(): Promise<Heading>;
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
  readonly record: (deltas: readonly Delta[], heading: Heading | undefined) => ReturnType<Recorder["record"]>;
  readonly run: (listener: Listener, signal: AbortSignal, recorder: Recorder) => Promise<Said>;
}

export function startLive({ key, owner, isBackground, now, announce, record, run }: LiveParts): Live {
  const deltas: Delta[] = [];
  const events: Event[] = isBackground ? [{ type: "turn-queued" }] : [];
  const control = new AbortController();
  let heading: Heading | undefined;
  let echo: string | undefined;
  let isWaiting = false;
  let hasBegun = false;
  let isOver = false;
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

  /** Resolves when something is so, or nothing more will come. */
  async function until(isSo: () => boolean, reader?: AbortSignal): Promise<void> {
    while (!isSo() && !isOver) {
      if (reader?.aborted === true) throw callerLeft();
      await new Promise<void>((resume) => sleepers.push(resume));
    }
  }

  const recorder: Recorder = {
    async place(given, waits, ask) {
      await announce(given, ask.echo);
      heading = given;
      echo = ask.echo;
      isWaiting = waits;
      wake();
    },
    take: (batch) => void deltas.push(...batch),
    record: () => record(deltas, heading),
  };
  const writer: Listener = {
    begin(given) {
      heading = given;
      isWaiting = false;
      hasBegun = true;
      wake();
    },
    tell(told) {
      events.push(...told);
      wake();
      return undefined;
    },
  };

  async function live(): Promise<Ended> {
    try {
      said = await run(writer, control.signal, recorder);
    } catch (thrown) {
      failure = thrown;
    }
    isOver = true;
    wake();
    return { heading, answer: said?.answer, failure, isAttended: attending > 0 };
  }

  async function tellAll(listener: Listener, signal: AbortSignal): Promise<void> {
    for (let at = 0; ;) {
      const news = events.slice(at);
      at = events.length;
      if (news.length > 0) await listener.tell(news);
      if (at < events.length) continue;
      if (isOver) return;
      await until(() => at < events.length, signal);
    }
  }

  return {
    key,
    owner,
    isBackground,
    get heading() {
      return heading;
    },
    get echo() {
      return echo;
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
    async placed() {
      await until(() => heading !== undefined);
      if (heading === undefined) throw failure;
      return heading;
    },
    ended: live(),
    async follow(listener, signal, isRepeated) {
      followers += 1;
      if (!isRepeated) attending += 1;
      signal.addEventListener("abort", wake);
      try {
        await until(() => heading !== undefined, signal);
        if (heading !== undefined) listener.place?.(heading);
        await until(() => isBackground || hasBegun, signal);
        if (heading === undefined || (failure !== undefined && !hasBegun)) throw failure;
        listener.begin(heading, isRepeated);
        await tellAll(listener, signal);
        if (said === undefined) throw failure;
        return { heading, answer: said.answer, isRepeated };
      } finally {
        signal.removeEventListener("abort", wake);
        followers -= 1;
        if (!isRepeated) attending -= 1;
        heardAt = now();
      }
    },
    stop: (reason) => control.abort(reason),
  };
}
