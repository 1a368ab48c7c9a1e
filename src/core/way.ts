/** The way of a turn, from what a caller wants to the end that is told once the turn is kept. */
import type { Adapter, Remark, Reply } from "./adapter.ts";
import { toSummaryItems, toSummaryReply, toSummarySettings } from "./compact.ts";
import { toKept } from "./context.ts";
import { GatewayError, toGatewayError } from "./errors.ts";
import type { Delta, Event } from "./event.ts";
import { createFrame } from "./frame.ts";
import type { Heading } from "./heading.ts";
import { type Hash, type History, type Marks, markTurn } from "./history.ts";
import type { Item } from "./item.ts";
import type { Line, Lines } from "./lines.ts";
import { type Asker, type Asking, look, readAsking, readProgram, see, type Seen, writeProgram } from "./look.ts";
import { type Found, isOtherProgram, type Node, type Place, type Program, takesTip } from "./place.ts";
import { isReference, resolveReferences } from "./references.ts";
import type { RoutedTurn } from "./route/attempts.ts";
import type { Idempotency, Recording, Store } from "./store.ts";
import type { Answer, Ask, Trace, Turn } from "./turn.ts";
import { type CountText, fitWindow, isOursToShorten } from "./window.ts";

export interface Caller extends Asker {
  readonly signal: AbortSignal;
  /** Ends the answer where it is; what was said of it counts. */
  readonly interrupt?: AbortSignal | undefined;
  /** Repeats get the same answer. */
  readonly idempotency?: Idempotency | undefined;
  /** It resumes the stream of an answer, and no other: whether it is that of this turn. */
  readonly resumes?: ((key: string) => boolean) | undefined;
  /** Takes a slot for a turn that outlives this call, and gives it back when called. Throws if there is none. */
  readonly hold?: (() => () => void) | undefined;
  readonly trace?: Trace | undefined;
}

/** Who hears a turn while it is said. A promise says that the listener is full: nothing more is read until it resolves. */
export interface Listener {
  /** The turn has its key; it may still have to wait, or fail. */
  enter?(key: string): void;
  /** It has its place; it may still fail. */
  place?(heading: Heading): void;
  /** `isRepeated`: the answer to an earlier request with the same key. */
  begin(heading: Heading, isRepeated?: boolean): void;
  tell(events: readonly Event[]): Promise<void> | undefined;
}

/** What is told of a request while its turn runs. */
export type Asked = Pick<Ask, "echo" | "items">;

/** A turn that outlives its caller: it is heard before it is framed, so that any reader can frame it anew. */
export interface Recorder {
  /** The turn has its place, or one in the line before it: from here on only the model can fail it. */
  place(heading: Heading, waits: boolean, ask: Asked): Promise<void>;
  take(deltas: readonly Delta[]): void;
  /** What is kept of it beside the turn. */
  readonly record: () => Recording;
}

export interface Said {
  readonly heading: Heading;
  readonly answer: Answer;
  /** What a summary stands for. */
  readonly compacted?: readonly Item[] | undefined;
  /** It answers an earlier request with the same key. */
  readonly isRepeated?: boolean | undefined;
}

export interface Ports {
  readonly store: Store;
  readonly adapter: Adapter;
  readonly now: () => number;
  readonly hash: Hash;
  /** Estimates how many tokens a text has. */
  readonly countText: CountText;
  readonly maxWaiting: () => number;
}

/** The way of one turn. Throws what went wrong before the first word; what goes wrong later is in the answer. */
export interface Way {
  run(ask: Ask, caller: Caller, key: string, listener: Listener, recorder?: Recorder): Promise<Said>;
  /** What the model would see, without asking it. */
  show(ask: Ask, caller: Caller, key: string): Promise<Turn>;
  /** What the turns that run continue. */
  readonly continued: ReadonlySet<Node>;
}

export function createWay(ports: Ports, lines: Lines): Way {
  const { store, adapter, now, hash } = ports;
  const continued = new Set<Node>();

  return { run, show, continued };

  async function run(given: Ask, caller: Caller, key: string, listener: Listener, recorder?: Recorder): Promise<Said> {
    const createdAt = now();
    const { owner, interrupt } = caller;
    const signal = interrupt === undefined ? caller.signal : AbortSignal.any([caller.signal, interrupt]);
    const isInterrupted = (): boolean => interrupt?.aborted === true && !caller.signal.aborted;

    // 1 what the request shows
    const ask = given.items.some(isReference) ? await resolveReferences(store, owner, given) : given;
    const asking = await readAsking(store, ask, caller, hash);
    const { session, history } = asking;
    const isKept = ask.keep === "yes" || (ask.keep === "in-session" && session !== undefined);

    // 2 what the store knows of it; 3 stand in line, only where a tip is continued; who had to wait looks again
    let seen = await look(store, asking);
    const standing = seen.place.waits && session !== undefined ? standInLine(seen, session, asking, signal) : undefined;
    if (asking.mayWait && !seen.place.waits && session !== undefined) lines.skip(session);
    const line = standing === "apart" ? undefined : standing;
    let isPlaced = false;
    let parent: Node | undefined;
    // From here on the line is left, whatever fails.
    try {
      let isApart = standing === "apart";
      if (line?.before !== undefined) {
        if (recorder !== undefined) {
          await recorder.place(toHeading(seen.place, seen.found, 0), true, ask);
          isPlaced = true;
        }
        try {
          await line.before;
          seen = await look(store, asking);
        } catch (thrown) {
          // A turn that was acknowledged while it waits is stored, however it ends.
          if (!isPlaced || !signal.aborted) throw thrown;
          isApart = true;
        }
      }
      const { found } = seen;
      const spot = isApart ? apart(seen.place, asking) : seen.place;
      ({ parent } = spot);
      if (parent !== undefined) continued.add(parent);

      // 4 what the model sees
      const context = await see(store, asking, { found, place: spot });
      const items = ask.compacts === true ? toSummaryItems(context, ask.itemsParam) : context;
      const remarks: Remark[] = [];
      let heading: Heading = { ...toHeading(spot, found, context.length), remarks };
      if (recorder !== undefined && !isPlaced) await recorder.place(heading, false, ask);
      listener.place?.(heading);

      // 5 the first word; a failure up to here is a status
      if (isKept) store.checkKeeping();
      const { model } = ask;
      const settings = ask.compacts === true ? toSummarySettings(ask.settings) : ask.settings;
      let shown: readonly Item[] = items;
      const { itemsParam } = ask;
      const whole = { items, own: ask.items, itemsParam, settings, mayShorten: isOursToShorten(ask, spot.remembers) };
      const reply = await open({
        id: key,
        trace: caller.trace,
        model,
        items,
        settings,
        // Nobody waits for a background answer as a whole, and a stream may take longer.
        stream: ask.stream || ask.background === true,
        fit: (tokens) => (shown = fitWindow(whole, tokens, ports.countText)),
      });
      const leftOutItems = items.length - shown.length;
      if (leftOutItems > 0) heading = { ...heading, contextItems: context.length - leftOutItems, leftOutItems };
      listener.begin(heading);

      // 6 word by word; 7 kept, durably
      const { answer: heard, isLoose } = await hear(reply, key, listener, signal, isInterrupted, recorder);
      const known = remarks.filter(({ type }) => type !== "asked");
      const answer = known.length === 0 ? heard : { ...heard, remarks: known };
      // An aborted turn moves no tip, so the next one need not wait; its partial answer is found by its id.
      if (isLoose) line?.leave();
      const ended = isWorthKeeping(answer, isLoose) ? await keep(answer) : answer;

      // 8 the end is told
      if (ended.error?.code === "client_closed") throw ended.error;
      const full = listener.tell([{ type: "turn-end", answer: ended }]);
      if (full !== undefined) await full;
      return { heading, answer: ended, compacted: ask.compacts === true ? context : undefined };

      /** Of a turn that was acknowledged already, a failure is its answer; so is an interruption. */
      async function open(turn: RoutedTurn): Promise<Reply> {
        try {
          signal.throwIfAborted();
          const reply = await adapter.open(turn, signal, (remark) => void remarks.push(remark));
          return ask.compacts === true ? toSummaryReply(reply) : reply;
        } catch (thrown) {
          if (ask.background !== true && !isInterrupted()) throw thrown;
          return { first: [], next: () => Promise.reject(thrown) };
        }
      }

      function isWorthKeeping({ items }: Answer, isLoose: boolean): boolean {
        if (ask.background === true) return true;
        const isRepeatable = caller.idempotency !== undefined && !isLoose;
        return (isKept && (!isLoose || items.length > 0)) || isRepeatable;
      }

      async function keep(said: Answer): Promise<Answer> {
        const isFirm = !isLoose && ask.keep !== "no";
        try {
          await store.commit({
            owner,
            session: session ?? found.session?.id,
            key,
            createdAt,
            parent,
            marks: toMarks(spot, history, ask, said),
            remembers: spot.remembers,
            model,
            input: toKept(ask.items, history, spot, found),
            answer: said,
            echo: ask.echo,
            record: recorder?.record(),
            leads: spot.leads && isFirm,
            tip: found.session?.tip?.turn,
            program: asking.claim.isByHeader && parent === undefined ? asking.claim.program() : undefined,
            takesTip: isFirm && takesTip(asking.claim, spot),
            userHint: asking.userHint,
            learns: spot.learns && isFirm,
            isLoose: !isFirm,
          });
          return said;
        } catch (thrown) {
          const error = thrown instanceof GatewayError ? thrown : notKept(thrown);
          return {
            ...said,
            status: "failed",
            error: said.error === undefined ? error : alsoNotKept(said.error, error),
          };
        }
      }
    } finally {
      if (parent !== undefined) continued.delete(parent);
      line?.leave();
    }

    function toHeading({ told }: Place, { session: known }: Found, contextItems: number): Heading {
      return {
        key,
        createdAt,
        model: ask.model,
        session: known?.isHidden === true ? undefined : (session ?? known?.id),
        told: told === "stateless" && isKept ? "new" : told,
        contextItems,
        leftOutItems: 0,
        remarks: [],
      };
    }
  }

  async function show(given: Ask, caller: Caller, key: string): Promise<Turn> {
    const asked = await readAsking(store, await resolveReferences(store, caller.owner, given), caller, hash);
    const asking = { ...asked, mayWait: false };
    const items = await see(store, asking, await look(store, asking));
    const { model, settings } = asking.ask;
    return { id: key, model, items, settings, stream: false };
  }

  /** `apart`: a session's first turn runs, and this is another program's; it is a root, and does not wait. */
  function standInLine({ found }: Seen, session: string, { claim }: Asking, signal: AbortSignal): Line | "apart" {
    const own = claim.program();
    const running = runningIn(session);
    const isFirst = found.session?.tip === undefined && claim.name === "hint";
    if (isFirst && running !== undefined && running.instructions !== own.instructions) return "apart";
    return lines.enter(session, writeProgram(own), ports.maxWaiting(), signal);
  }

  /** A separate root. It leaves the tip to the running turn, unless it would take the tip from that turn afterwards. */
  function apart(place: Place, { claim, session }: Asking): Place {
    const root = { ...place, parent: undefined };
    const running = session === undefined ? undefined : runningIn(session);
    return { ...root, leads: takesTip(claim, root) && isOtherProgram(claim.program(), running) };
  }

  /** The program whose turn is at the front of the session's line. */
  function runningIn(session: string): Program | undefined {
    return readProgram(lines.front(session) ?? "");
  }

  /** Deltas become events, events become the listener's: the only waiting is for the next read or a full socket. */
  async function hear(
    reply: Reply,
    key: string,
    listener: Listener,
    signal: AbortSignal,
    isInterrupted: () => boolean,
    recorder: Recorder | undefined,
  ): Promise<{ readonly answer: Answer; readonly isLoose: boolean }> {
    const frame = createFrame(key);
    let events: Event[] = [{ type: "turn-start" }];
    let failure: GatewayError | undefined;
    try {
      for (let deltas: Reply["first"] | undefined = reply.first; deltas !== undefined; deltas = await reply.next()) {
        recorder?.take(deltas);
        frame.accept(deltas, events);
        if (frame.failure !== undefined) throw frame.failure;
        if (events.length === 0) continue;
        const full = listener.tell(events);
        if (full !== undefined) await full;
        events = [];
      }
    } catch (thrown) {
      // A turn whose calls cannot be trusted is a failure, even if its caller interrupts it at the same time.
      if (isInterrupted() && frame.failure === undefined) {
        events.push({ type: "turn-interrupted" });
        frame.accept([{ type: "finish", reason: "interrupted" }], events);
      } else failure = frame.failure ?? toGatewayError(signal.aborted ? signal.reason : thrown);
    }
    const answer = frame.end(failure, now(), events);
    reply.close?.(answer);
    if (events.length > 0) void listener.tell(events);
    return { answer, isLoose: failure !== undefined };
  }

  function toMarks(place: Place, history: History, ask: Ask, answer: Answer): Marks {
    const before = place.remembers ? (place.parent?.digest ?? "") : (history.talk().shown[0]?.digest ?? "");
    return markTurn(before, ask.items.slice(place.remembers ? place.from : history.fresh), answer.items, hash);
  }
}

function notKept(cause: unknown): GatewayError {
  const message = "The answer could not be kept, so the turn did not happen. Send the request again.";
  return new GatewayError("store_unavailable", message, { retryAfterSeconds: 1, cause });
}

/** The error of an aborted turn that could not be stored: its own failure comes first. The log has both. */
function alsoNotKept(failure: GatewayError, error: GatewayError): GatewayError {
  const { code, param, retryAfterSeconds, wireCode } = failure;
  const both = `${failure.message} The part of the answer that had arrived could not be stored either: ${error.message}`;
  const cause = new AggregateError([failure, error], both);
  return new GatewayError(code, both, { param: param ?? undefined, retryAfterSeconds, wireCode, cause });
}
