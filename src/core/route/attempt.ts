/** One attempt at a lane: bounds what it says, and reports to the observer how it went. */
import { answerTooLong, sizeOf } from "./bound.ts";
import type { Delta, Deltas } from "../delta.ts";
import { toGatewayError } from "../errors.ts";
import type { Lane } from "./lane.ts";
import type { adaptTurn } from "./adapt.ts";
import { type Finish, isCutOff, type Turn, type Usage } from "../turn.ts";
import type { Attempt, Observer } from "../observer.ts";

/** The deltas of a lane that is asked now, in its caller's terms. If it says too much, the turn fails. */
export async function* attempt(
  lane: Pick<Lane, "name" | "maxAnswerCharacters">,
  { turn, restore }: ReturnType<typeof adaptTurn>,
  stream: (turn: Turn) => AsyncIterable<readonly Delta[]>,
  signal: AbortSignal,
  observer?: Pick<Observer, "asked">,
): Deltas {
  const asked = observer?.asked(lane.name, turn);
  let said = 0;
  let usage: Usage | undefined;
  let finish: Finish = "stop";
  let outcome: Attempt["outcome"] = "cancelled";
  let code: Attempt["code"];
  try {
    for await (const batch of stream(asked?.trace === undefined ? turn : { ...turn, trace: asked.trace })) {
      for (const delta of batch) {
        said += sizeOf(delta);
        if (delta.type === "usage") usage = delta.usage;
        // Other choices do not decide the outcome.
        else if (delta.type === "finish" && delta.choice === undefined) finish = delta.reason;
      }
      if (said > lane.maxAnswerCharacters) throw answerTooLong(lane);
      yield restore === undefined ? batch : restore(batch);
    }
    outcome = isCutOff(finish) ? "incomplete" : "completed";
  } catch (thrown) {
    outcome = "failed";
    ({ code } = toGatewayError(thrown));
    throw thrown;
  } finally {
    // A cancelled adapter may end in any way.
    asked?.ended(signal.aborted ? { outcome: "cancelled", usage } : { outcome, code, usage });
  }
}
