/** One attempt at a lane: bounds what it says, and reports to the observer how it went. */
import { answerTooLong, sizeOf } from "./bound.ts";
import type { Delta } from "../delta.ts";
import { toGatewayError } from "../errors.ts";
import type { Lane } from "./lane.ts";
import type { adaptTurn } from "./adapt.ts";
import { type Finish, isCutOff, type Turn, type Usage } from "../turn.ts";
import type { Attempt, Observer } from "../observer.ts";

/** The deltas of a lane that is asked now, in its caller's terms. If it says too much, the turn fails. */
export function attempt(
  lane: Pick<Lane, "name" | "maxAnswerCharacters">,
  { turn, restore }: ReturnType<typeof adaptTurn>,
  stream: (turn: Turn) => AsyncIterable<readonly Delta[]>,
  signal: AbortSignal,
  observer?: Pick<Observer, "asked">,
): AsyncIterator<readonly Delta[]> {
  let said = 0;
  let asked = observer?.asked(lane.name, turn);
  let usage: Usage | undefined;
  let finish: Finish = "stop";

  function end(outcome: Attempt["outcome"], code?: Attempt["code"]): void {
    // A cancelled adapter may end in any way.
    asked?.ended(signal.aborted ? { outcome: "cancelled", usage } : { outcome, code, usage });
    asked = undefined;
  }

  function fail(thrown: unknown): void {
    end("failed", toGatewayError(thrown).code);
  }

  function inspect(batch: readonly Delta[]): void {
    for (const delta of batch) {
      said += sizeOf(delta);
      if (delta.type === "usage") usage = delta.usage;
      // Other choices do not decide the outcome.
      else if (delta.type === "finish" && delta.choice === undefined) finish = delta.reason;
    }
  }

  function open(): AsyncIterator<readonly Delta[]> {
    try {
      const trace = asked?.trace;
      return stream(trace === undefined ? turn : { ...turn, trace })[Symbol.asyncIterator]();
    } catch (thrown) {
      fail(thrown);
      throw thrown;
    }
  }

  const deltas = open();
  return {
    async next() {
      try {
        const step = await deltas.next();
        if (step.done === true) {
          end(isCutOff(finish) ? "incomplete" : "completed");
          return step;
        }
        inspect(step.value);
        if (said <= lane.maxAnswerCharacters)
          return restore === undefined ? step : { done: false, value: restore(step.value) };
        await deltas.return?.();
        throw answerTooLong(lane);
      } catch (thrown) {
        fail(thrown);
        throw thrown;
      }
    },
    async return() {
      end("cancelled");
      await deltas.return?.();
      return { done: true, value: undefined };
    },
  };
}
