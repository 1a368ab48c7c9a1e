/** Reads server-sent events into deltas on either wire: the events differ, their ends and failures do not. */
import type { Delta } from "../../core/delta.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { brokenOff } from "../failures.ts";
import { createEventReader } from "../http/events.ts";
import type { Scrub } from "../http/refusal.ts";
import { type JsonObject, isObject } from "../json.ts";
import { requireJson } from "./json.ts";

/** Where a reader's deltas go. */
export type Say = (delta: Delta) => void;

/** Reads one answer of a wire, event by event. */
export interface AnswerReader {
  accept(event: JsonObject): void;
  stage(): Stage;
  /** Says what waited for the end; throws if it may not end here. */
  end(): void;
}

/**
 * How far an answer is. `finished`: it has said why it ends, so it may end here; `whole`: it has said so last, and
 * alone, so a failure of whatever follows does not matter; `over`: nothing more is expected.
 */
type Stage = "open" | "finished" | "whole" | "over";

export interface ReplyReader {
  /** The deltas of one network read. */
  read(buffers: readonly Buffer[]): readonly Delta[];
  /** What is left when the upstream has ended its answer. */
  end(): readonly Delta[];
  /** Throws the failure that followed the deltas just read, so that they are passed on first. */
  check(): void;
  /** A failure of what follows no longer matters. */
  isWhole(): boolean;
  /** Nothing that comes now belongs to the answer. */
  isDone(): boolean;
}

/** As much as a whole answer: a response's last event contains all of it, including generated images. */
const maxEventBytes = 64 * 1024 * 1024;
/** For events without deltas: arguments of a call that has no name yet, or a picture in the making. */
const maxUnsentSize = 4 * maxEventBytes;

export function createStreamReader(createAnswerReader: (say: Say) => AnswerReader, scrub: Scrub): ReplyReader {
  const events = createEventReader(maxEventBytes, scrub);
  let deltas: Delta[] = [];
  const answer = createAnswerReader((delta) => deltas.push(delta));
  let done = false;
  let unsentSize = 0;
  let failure: GatewayError | undefined;
  const isWhole = () => answer.stage() === "whole";

  function accept(texts: readonly string[]): void {
    for (const text of texts) {
      const isEnd = text.length < 20 && text.trim() === "[DONE]";
      const sentBefore = deltas.length;
      if (!isEnd) answer.accept(requireObject(requireJson(text, scrub)));
      if (deltas.length === sentBefore) unsentSize += text.length;
      if (unsentSize > maxUnsentSize) throw noContent();
      if (isEnd || answer.stage() === "over") return end();
    }
  }

  function end(): void {
    answer.end();
    done = true;
  }

  function gather(listen: () => void): readonly Delta[] {
    deltas = [];
    try {
      listen();
    } catch (thrown) {
      failure = toGatewayError(thrown);
    }
    return deltas;
  }

  /** What follows the last whole event. After the finish it may be cut off: the answer is whole without it. */
  function acceptRest(): void {
    try {
      accept(events.end());
    } catch (thrown) {
      if (!isWhole() || toGatewayError(thrown).code !== "adapter_protocol") throw thrown;
    }
  }

  return {
    read: (buffers) => gather(() => accept(events.read(buffers))),
    end: () =>
      gather(() => {
        acceptRest();
        if (done) return;
        if (answer.stage() === "open") throw brokenOff();
        end();
      }),
    check() {
      if (failure !== undefined) throw failure;
    },
    isWhole,
    isDone: () => done,
  };
}

function noContent(): GatewayError {
  return new GatewayError(
    "adapter_protocol",
    `The upstream sent more than ${maxUnsentSize} characters of events without content.`,
    { wireCode: "adapter_answer_too_large" },
  );
}

export function requireObject(value: unknown): JsonObject {
  if (isObject(value)) return value;
  throw new GatewayError("adapter_protocol", "The upstream's answer is not a JSON object.");
}
