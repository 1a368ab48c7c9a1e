/** Makes events of an adapter's deltas: it alone opens and closes items, and it alone ends a turn. */
import type { Delta } from "../delta.ts";
import { callerLeft, type GatewayError } from "../errors.ts";
import type { Event, Events } from "../event.ts";
import type { Tell } from "./items.ts";
import { createScript, type Script } from "./script.ts";
import type { Answer } from "../turn.ts";

/** How a turn ends outside the stream. */
export interface Ending {
  /** Awaited before the end is told; if it throws, the turn has failed. */
  settle(answer: Answer): Promise<void>;
  /** Awaited before a failed or cancelled turn's end is told, or when nobody listens to its end; it must not throw. */
  abandon?(answer: Answer): Promise<void>;
  /** What the caller is told of something thrown. */
  explain(thrown: unknown): GatewayError;
  /** Called once, when it is decided how the turn ends, told or not. */
  end(): void;
  now(): Date;
}

/**
 * Yields a batch of events for each batch of deltas; the first one holds `turn-start`, the last one `turn-end`.
 * A failure before the first delta is thrown; a later one closes what is open and ends the turn as failed.
 */
export async function* frame(turnId: string, deltas: AsyncIterable<readonly Delta[]>, ending: Ending): Events {
  let events: Event[] = [{ type: "turn-start" }];
  const scripts = createScripts(turnId, (event) => void events.push(event));
  let told = false;
  let answer: Answer | undefined;
  try {
    for await (const batch of deltas) {
      for (const delta of batch) scripts.accept(delta);
      if (events.length === 0) continue;
      told = true;
      yield events;
      events = [];
    }
    answer = scripts.end(undefined, ending.now());
    await ending.settle(answer);
  } catch (thrown) {
    const failure = ending.explain(thrown);
    if (!told) throw failure;
    answer = scripts.end(failure, ending.now());
    await ending.abandon?.(answer);
  } finally {
    if (told && answer === undefined) await ending.abandon?.(scripts.end(ending.explain(callerLeft()), ending.now()));
    // Before the end is told: whoever waits for the turn does not depend on how fast its caller reads.
    ending.end();
  }
  events.push({ type: "turn-end", answer });
  yield events;
}

/** The answer of a turn, and any other choices. */
function createScripts(turnId: string, tell: Tell) {
  const first = createScript(turnId, tell);
  const others: Script[] = [];
  return {
    accept(delta: Delta): void {
      const { choice } = delta;
      if (choice === undefined) return first.accept(delta);
      while (others.length < choice) {
        const number = others.length + 1;
        others.push(createScript(`${turnId}_${number}_`, (event) => tell({ ...event, choice: number })));
      }
      others[choice - 1]?.accept(delta);
    },
    /** Closes what is open. */
    end(failure: GatewayError | undefined, endedAt: Date): Answer {
      for (const script of [first, ...others]) script.closeAll(failure === undefined);
      const answer = first.toAnswer(failure, endedAt);
      return others.length === 0 ? answer : { ...answer, others: others.map((script) => script.toChoice()) };
    },
  };
}

/** The events of a turn that failed after its stream was opened and before the adapter said a word. */
export function failedTurn(error: GatewayError, endedAt: Date): readonly [Event, TurnEnd] {
  return [{ type: "turn-start" }, { type: "turn-end", answer: createScript("", () => {}).toAnswer(error, endedAt) }];
}

/** The events of a turn that needed no model. */
export function emptyTurn(endedAt: Date): readonly Event[] {
  const script = createScript("", () => {});
  script.accept({ type: "usage", usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 } });
  return [{ type: "turn-start" }, { type: "turn-end", answer: script.toAnswer(undefined, endedAt) }];
}

type TurnEnd = Extract<Event, { type: "turn-end" }>;
