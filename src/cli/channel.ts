/** Questions and answers between the parent of a gateway and a worker, on the channel that Node gives them. */
import type { Worker } from "node:cluster";
import type { Config } from "../config/config.ts";
import { CommandError } from "./command.ts";
import { explain } from "./open.ts";

/** A start is answered with the address, a measurement with what Prometheus reads: of one worker, or of all. */
type Question = { readonly type: "start" | "reload"; readonly config: Config } | { readonly type: "measure" };

export type Ask = (question: Question) => Promise<string>;

type Message =
  | { readonly number: number; readonly question: Question }
  | { readonly number: number; readonly answer: string }
  | { readonly number: number; readonly failure: string };

/** Returns how the other side is asked. What it throws is thrown here as a sentence, and so is that it is gone. */
export function connect(other: Worker, reply: Ask): Ask {
  const asked = new Map<number, PromiseWithResolvers<string>>();
  let count = 0;
  // A message to somebody who is just ending; the disconnect tells.
  other.on("error", () => {});
  other.on("disconnect", () => {
    for (const { reject } of asked.values()) reject(gone());
  });
  other.on("message", async (message: Message) => {
    const { number } = message;
    if ("answer" in message) asked.get(number)?.resolve(message.answer);
    else if ("failure" in message) asked.get(number)?.reject(new CommandError(message.failure));
    else {
      const replied = reply(message.question).then(
        (answer) => ({ number, answer }),
        (thrown: unknown) => ({ number, failure: explain(thrown) }),
      );
      other.send(await replied, () => {});
    }
  });

  return (question) => {
    const number = (count += 1);
    const answer = Promise.withResolvers<string>();
    asked.set(number, answer);
    other.send({ number, question } satisfies Message, (failure) => failure && answer.reject(gone()));
    return answer.promise.finally(() => asked.delete(number));
  };
}

const gone = (): CommandError => new CommandError("A process of the gateway has ended.");
