/** A turn that outlives its caller: what the model says is kept as deltas, and whoever follows it hears it from its beginning. */
import { callerLeft, type GatewayError } from "./errors.ts";
import type { Delta, Event } from "./event.ts";
import type { Heading } from "./heading.ts";
import { inputId, type Item } from "./item.ts";
import type { News } from "./store.ts";
import type { Asked, Listener, Recorder, Said } from "./way.ts";

/** A turn that was acknowledged and is not over. */
export interface Promised {
  readonly heading: Heading;
  readonly status: "queued" | "in_progress";
  readonly echo: string | undefined;
  readonly input: readonly Item[];
  /** It answers an earlier request with the same key. */
  readonly isRepeated?: boolean | undefined;
}

interface LiveParts {
  readonly key: string;
  readonly owner: string;
  readonly isBackground: boolean;
  readonly now: () => number;
  /** Called when it has its place, before anybody is told. */
  readonly announce: (heading: Heading, waits: boolean, ask: Asked) => Promise<void>;
  /** What whoever follows it elsewhere hears. */
  readonly publish?: ((news: News) => void) | undefined;
  readonly record: (deltas: readonly Delta[], heading: Heading | undefined) => ReturnType<Recorder["record"]>;
  readonly run: (listener: Listener, signal: AbortSignal, recorder: Recorder) => Promise<Said>;
}

export class Live {
  readonly key: string;
  readonly owner: string;
  readonly isBackground: boolean;
  /** Undefined until it has its place. */
  heading: Heading | undefined;
  #ask: Asked | undefined;
  /** It stands in line. */
  #isWaiting = false;
  answer: Said["answer"] | undefined;
  failure: unknown;
  /** Whoever asked for it hears its end. */
  isAttended = false;
  /** Resolves when it is over, however it went. */
  readonly ended: Promise<void>;
  readonly #parts: LiveParts;
  readonly #deltas: Delta[] = [];
  readonly #events: Event[];
  readonly #control = new AbortController();
  #hasBegun = false;
  #isOver = false;
  #followers = 0;
  /** Those of them who asked for it first. */
  #attending = 0;
  #heardAt: number;
  #sleepers: (() => void)[] = [];

  constructor(parts: LiveParts) {
    this.#parts = parts;
    this.key = parts.key;
    this.owner = parts.owner;
    this.isBackground = parts.isBackground;
    this.#events = parts.isBackground ? [{ type: "turn-queued" }] : [];
    this.#heardAt = parts.now();
    this.ended = this.#run();
  }

  /** When somebody last listened to it. */
  get heardAt(): number {
    return this.#followers > 0 ? this.#parts.now() : this.#heardAt;
  }

  /** Somebody listens to it, here or elsewhere. */
  look(): void {
    this.#heardAt = this.#parts.now();
  }

  stop(reason: GatewayError): void {
    this.#control.abort(reason);
  }

  /** Resolves when it has its place. Throws what kept it from one. */
  async placed(): Promise<Promised> {
    this.look();
    await this.#until(() => this.heading !== undefined);
    const { heading, key, failure } = this;
    if (heading === undefined) throw failure;
    const { echo, items = [] } = this.#ask ?? {};
    const input = items.map((item, index) => Object.assign({}, item, { id: inputId(item, key, index) }));
    return { heading, status: this.#isWaiting ? "queued" : "in_progress", echo, input };
  }

  /** Tells it from its beginning. Throws if it fails before its first word, or if the reader leaves. */
  async follow(listener: Listener, signal: AbortSignal, isRepeated: boolean): Promise<Said> {
    this.#followers += 1;
    if (!isRepeated) this.#attending += 1;
    signal.addEventListener("abort", this.#wake);
    try {
      await this.#until(() => this.heading !== undefined, signal);
      if (this.heading !== undefined) listener.place?.(this.heading);
      await this.#until(() => this.isBackground || this.#hasBegun, signal);
      if (this.heading === undefined || (this.failure !== undefined && !this.#hasBegun)) throw this.failure;
      listener.begin(this.heading, isRepeated);
      await this.#tell(listener, signal);
      if (this.answer === undefined) throw this.failure;
      return { heading: this.heading, answer: this.answer, isRepeated };
    } finally {
      signal.removeEventListener("abort", this.#wake);
      this.#followers -= 1;
      if (!isRepeated) this.#attending -= 1;
      this.look();
    }
  }

  async #tell(listener: Listener, signal: AbortSignal): Promise<void> {
    for (let at = 0; ;) {
      const news = this.#events.slice(at);
      at = this.#events.length;
      if (news.length > 0) await listener.tell(news);
      if (at < this.#events.length) continue;
      if (this.#isOver) return;
      await this.#until(() => at < this.#events.length, signal);
    }
  }

  async #run(): Promise<void> {
    const recorder: Recorder = {
      place: (heading, waits, ask) => this.#place(heading, waits, ask),
      take: (deltas) => this.#take(deltas),
      record: () => this.#parts.record(this.#deltas, this.heading),
    };
    const listener: Listener = {
      begin: (heading) => this.#begin(heading),
      tell: (events) => this.#hear(events),
    };
    try {
      ({ answer: this.answer } = await this.#parts.run(listener, this.#control.signal, recorder));
    } catch (thrown) {
      this.failure = thrown;
    }
    this.isAttended = this.#attending > 0;
    this.#isOver = true;
    this.#wake();
  }

  #take(deltas: readonly Delta[]): void {
    this.#deltas.push(...deltas);
    this.#parts.publish?.({ deltas });
  }

  async #place(heading: Heading, waits: boolean, ask: Asked): Promise<void> {
    await this.#parts.announce(heading, waits, ask);
    this.heading = heading;
    this.#ask = ask;
    this.#isWaiting = waits;
    this.#wake();
  }

  #begin(heading: Heading): void {
    this.heading = heading;
    this.#isWaiting = false;
    this.#hasBegun = true;
    this.#parts.publish?.({ heading });
    this.#wake();
  }

  #hear(events: readonly Event[]): undefined {
    this.#events.push(...events);
    this.#wake();
  }

  readonly #wake = (): void => {
    for (const resume of this.#sleepers.splice(0)) resume();
  };

  /** Resolves when something is so, or nothing more will come. */
  async #until(isSo: () => boolean, reader?: AbortSignal): Promise<void> {
    while (!isSo() && !this.#isOver) {
      if (reader?.aborted === true) throw callerLeft();
      await new Promise<void>((resume) => this.#sleepers.push(resume));
    }
  }
}
