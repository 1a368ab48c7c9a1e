/** Sends an answer over HTTP: whole, or as server-sent events with heartbeats from the start. */
import { toGatewayError } from "../core/errors.ts";
import type { Event } from "../core/event.ts";
import { failedTurn } from "../core/frame/frame.ts";
import { lengthOfItems } from "../core/frame/pieces.ts";
import type { Reply } from "../core/gateway.ts";
import { type About, type Remark, unplaced, type Voice } from "../core/ports.ts";
import type { Answer } from "../core/turn.ts";
import { createSseWriter } from "./client.ts";
import { type Follower, holdFollower } from "./followers.ts";
import type { RequestRecord } from "./journal.ts";
import { createNumbering, type Numbering } from "./numbering.ts";
import type { HttpReply } from "./reply.ts";
import { checkRepeated, holdRest } from "./unread.ts";

/** Sends the answer once it is complete. */
export async function sendWhole(
  { about, events, isRepeated }: Reply,
  voice: Pick<Voice, "whole">,
  reply: HttpReply,
): Promise<HttpReply> {
  reply.request.about = about;
  let answer: Answer | undefined;
  for await (const batch of events) {
    const last = batch.at(-1);
    if (last?.type === "turn-end") answer = last.answer;
  }
  if (!isRepeated) reply.request.usage = answer?.usage;
  if (answer?.error !== undefined) throw answer.error;
  if (answer === undefined) throw new Error("a turn ended without an answer");
  if (isRepeated) checkRepeated(reply.request.terms.held, reply, lengthOfItems(answer.items, Buffer.byteLength));
  else reply.request.firstByte = { ms: reply.elapsedMs, isStreamed: false };
  return sendJson(about, voice.whole(about, answer), reply, isRepeated);
}

/** Sends JSON text about a turn. */
export function sendJson(about: About, text: string, reply: HttpReply, isRepeated = false): HttpReply {
  if (isRepeated) checkRepeated(reply.request.terms.held, reply, Buffer.byteLength(text));
  reply.set(toHeaders(about, reply.elapsedMs, isRepeated));
  return reply.header("content-type", "application/json; charset=utf-8").send(text);
}

/** A requested stream: its answer, its numbering, and what is known of the turn before it is placed. */
export interface Streamed {
  readonly answering: Promise<Reply>;
  readonly voice: Voice;
  readonly numbering: Numbering | undefined;
  readonly named: Pick<About, "id" | "model">;
  /** Aborts when the caller leaves. */
  readonly signal: AbortSignal;
  /** An earlier request asked for it, and was counted then. */
  readonly isRecalled?: boolean | undefined;
}

/** Sends the answer event by event. A failure before the first byte is thrown, a later one is sent in the stream. */
export async function sendStream(
  { answering, voice, numbering, named, signal, isRecalled = false }: Streamed,
  reply: HttpReply,
): Promise<HttpReply> {
  const { limits, held, now, journal } = reply.request.terms;
  let placed: Reply | undefined;
  let follower: Follower | undefined;
  let spoke = false;
  const numberFor = ({ id }: Pick<About, "id">) =>
    numbering === undefined ? (text: string) => text : createNumbering(numbering, id);
  const writer = createSseWriter(
    reply.raw,
    () => {
      const known = placed && toHeaders(placed.about, reply.elapsedMs, placed.isRepeated);
      reply.handOver();
      reply.raw.writeHead(200, { ...reply.headers, ...known, ...sseHeaders });
    },
    limits,
  );
  async function tell({ about, events }: Reply, isNew: boolean): Promise<void> {
    let step = await events.next();
    const say = voice.stream(about);
    const number = numberFor(about);
    // Apart from what waits for the caller: until a function ends, its text is kept.
    function write(batch: readonly Event[]): Promise<void> | undefined {
      const last = batch.at(-1);
      const end = last?.type === "turn-end" ? last : undefined;
      let text = number(say(end === undefined ? batch : batch.slice(0, -1)));
      if (end !== undefined) text += number(say([end]), isLost(end.answer));
      spoke = true;
      if (isNew) note(reply.request, batch, reply);
      if (end === undefined) return writer.write(text);
      if (end.answer.error !== undefined) journal.report(end.answer.error, reply.request);
      writer.end(text);
      return undefined;
    }
    for (; !step.done; step = await events.next()) {
      if (follower !== undefined) await follower.room(step.value);
      const drained = write(step.value);
      follower?.sent();
      await drained;
      follower?.sent();
      if (reply.raw.destroyed) break;
    }
  }
  try {
    placed = await answering;
    const { about } = placed;
    const isNew = !isRecalled && placed.isRepeated !== true;
    reply.request.about = about;
    if (!isNew) follower = holdFollower(held, reply, signal, placed.size);
    await tell(placed, isNew);
  } catch (thrown) {
    if (!reply.raw.headersSent) throw thrown;
    const error = toGatewayError(thrown);
    journal.report(error, reply.request);
    // Heartbeats have opened the stream, so the failure is sent inside it; but never after other content.
    if (spoke) reply.raw.destroy();
    else {
      const about = placed?.about ?? { ...unplaced, ...named, createdAt: now() };
      writer.end(numberFor(about)(voice.stream(about)(failedTurn(error, now()))));
    }
  } finally {
    writer.stop();
    follower?.release();
    holdRest(held, reply);
    await placed?.events.return();
  }
  return reply;
}

/** The caller of a gateway that died may have received more than is known here, but not the end. */
function isLost({ error, pieces }: Answer): boolean {
  return error?.code === "interrupted" && pieces === undefined;
}

/** Notes the first byte and the usage of a streamed answer for the journal; being queued is not a first byte. */
export function note(record: RequestRecord, events: readonly Event[], watch: { readonly elapsedMs: number }): void {
  const last = events.at(-1);
  if (last?.type === "turn-end") record.usage = last.answer.usage;
  if (last?.type !== "turn-queued") record.firstByte ??= { ms: watch.elapsedMs, isStreamed: true };
}

const sseHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  // no-transform: a proxy that compresses would hold events back.
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

/** What the caller may want to know about its turn beside the answer. */
function toHeaders(about: About, elapsedMs: number, isRepeated = false): Record<string, string> {
  const { session, history, contextItems, omittedItems, remarks } = about;
  const headers: Record<string, string> = { "openai-processing-ms": String(Math.round(elapsedMs)) };
  if (history !== undefined) headers["x-portico-history"] = history;
  if (contextItems !== undefined) {
    headers["x-portico-context"] = `${contextItems} items${omittedItems > 0 ? `, ${omittedItems} left out` : ""}`;
  }
  if (session !== undefined) headers["x-portico-session"] = session;
  if (isRepeated) headers["x-portico-replayed"] = "true";
  return remarks.length > 0 ? { ...headers, ...toRemarkHeaders(remarks) } : headers;
}

/** Which adapters were tried first, and what of the request was left out or changed. */
export function toRemarkHeaders(remarks: readonly Remark[]): Record<string, string> {
  const headers: Record<string, string> = {};
  const tried = remarks.flatMap((remark) => (remark.type === "tried" ? [`${remark.adapter} (${remark.code})`] : []));
  const warnings = remarks.flatMap((remark) => {
    if (remark.type === "changed") return [`${remark.what} changed to ${remark.to}`];
    return remark.type === "left-out" ? [`${remark.what} left out`] : [];
  });
  if (tried.length > 0) headers["x-portico-tried"] = toHeaderText(tried);
  if (warnings.length > 0) headers["x-portico-warning"] = toHeaderText(warnings);
  return headers;
}

const maxHeaderLength = 1_000;

/** Names in a remark may be the caller's own words, which a header cannot always carry. */
function toHeaderText(words: readonly string[]): string {
  return words
    .join(", ")
    .replaceAll(/[^\x20-\x7e]/g, "?")
    .slice(0, maxHeaderLength);
}
