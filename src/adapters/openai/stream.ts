/** Reads server-sent events into deltas, on either wire: the events are the wire's own, their ends and failures are alike. */
import type { Delta } from "../../core/delta.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { brokenOff } from "../failures.ts";
import { createEventReader } from "../http/events.ts";
import type { Scrub } from "../http/refusal.ts";
import { type JsonObject, isObject } from "../json.ts";
import { requireJson } from "./json.ts";

/** What a wire makes of one answer, event by event. */
export interface AnswerReader {
  hear(event: JsonObject, deltas: Delta[]): void;
  stage(): Stage;
  /** Tells what had to wait for the end; throws if it may not end so. */
  end(deltas: Delta[]): void;
}

/**
 * How far an answer has come. `finished`: it has said why it ends, so that it may end here; `whole`: it has said so last, and alone,
 * and what may still come is not worth its failure; `over`: nothing more is waited for.
 */
type Stage = "open" | "finished" | "whole" | "over";

export interface ReplyReader {
  /** The deltas of one network read. */
  read(buffers: readonly Buffer[]): readonly Delta[];
  /** What is left when the upstream has ended its answer. */
  end(): readonly Delta[];
  /** Throws the failure that stood behind the deltas just read: what was said before it is told before it. */
  check(): void;
  /** What may still come is not worth its failure. */
  isWhole(): boolean;
  /** Nothing that comes now belongs to the answer. */
  isDone(): boolean;
}

/** As much as a whole answer: the last event of a response holds all of it, with the images that were made. */
const maxEventBytes = 64 * 1024 * 1024;
/** What tells nothing may be held, as the arguments of a call without a name are; or it is a picture in the making. */
const maxUntoldSize = 4 * maxEventBytes;

export function createStreamReader(answer: AnswerReader, scrub: Scrub): ReplyReader {
  const events = createEventReader(maxEventBytes, scrub);
  let done = false;
  let untoldSize = 0;
  let failure: GatewayError | undefined;
  const isWhole = () => answer.stage() === "whole" || answer.stage() === "over";

  function hear(texts: readonly string[], deltas: Delta[]): void {
    for (const text of texts) {
      const isEnd = text.length < 20 && text.trim() === "[DONE]";
      const toldBefore = deltas.length;
      if (!isEnd) answer.hear(requireObject(requireJson(text, scrub)), deltas);
      if (deltas.length === toldBefore) untoldSize += text.length;
      if (untoldSize > maxUntoldSize) throw saidNothing();
      if (isEnd || answer.stage() === "over") {
        answer.end(deltas);
        done = true;
        return;
      }
    }
  }

  function gather(listen: (deltas: Delta[]) => void): readonly Delta[] {
    const deltas: Delta[] = [];
    try {
      listen(deltas);
    } catch (thrown) {
      failure = toGatewayError(thrown);
    }
    return deltas;
  }

  /** What stands behind the last whole event. Behind the finish it may be cut: the answer is whole without it. */
  function hearRest(deltas: Delta[]): void {
    try {
      hear(events.end(), deltas);
    } catch (thrown) {
      if (!isWhole() || toGatewayError(thrown).code !== "adapter_protocol") throw thrown;
    }
  }

  return {
    read: (buffers) => gather((deltas) => hear(events.read(buffers), deltas)),
    end: () =>
      gather((deltas) => {
        hearRest(deltas);
        if (done) return;
        if (answer.stage() === "open") throw brokenOff();
        answer.end(deltas);
        done = true;
      }),
    check() {
      if (failure !== undefined) throw failure;
    },
    isWhole,
    isDone: () => done,
  };
}

function saidNothing(): GatewayError {
  return new GatewayError(
    "adapter_protocol",
    `The upstream sent more than ${maxUntoldSize} characters of events that tell nothing.`,
    { wireCode: "adapter_answer_too_large" },
  );
}

export function requireObject(value: unknown): JsonObject {
  if (isObject(value)) return value;
  throw new GatewayError("adapter_protocol", "The upstream's answer is no JSON object.");
}
