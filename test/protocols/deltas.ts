/** Anything that an adapter may emit, for properties of every answer. */
import * as fc from "fast-check";
import type { Delta } from "../../src/core/delta.ts";
import type { Annotation, Extra } from "../../src/core/item.ts";

const text = fc.string({ unit: "grapheme", maxLength: 6 });
const index = fc.nat(2);

/** Extra fields of a call, or of an item of the dialect. */
const extra: fc.Arbitrary<Extra> = fc.constantFrom(
  { dialect: "chat", fields: { extra_content: { signature: "s" } } },
  { dialect: "responses", fields: { namespace: "mcp" } },
);

const annotation: fc.Arbitrary<Annotation> = fc.record({
  type: fc.constantFrom("url_citation", "file_citation"),
  fields: fc.record({ url: text, start_index: fc.nat(9) }),
});

/** A call with its arguments in pieces; there are no arguments for a call that is not open. */
const call: fc.Arbitrary<Delta[]> = fc
  .record({
    index,
    name: fc.constantFrom("f", 'g"'),
    kind: fc.constantFrom("function" as const, "custom" as const),
    early: fc.option(extra, { nil: undefined }),
    late: fc.option(extra, { nil: undefined }),
    pieces: fc.array(fc.constantFrom("{", "}", '"a":1', "{}"), { maxLength: 4 }),
  })
  .map(({ index, name, kind, pieces, early, late }) => [
    { type: "tool-call", index, name, kind, ...(early && { extra: early }) },
    ...pieces.slice(0, 1).map((text): Delta => ({ type: "tool-arguments", index, text })),
    ...(late?.dialect === (early ?? late)?.dialect && late
      ? [{ type: "tool-extra", index, extra: late } as const]
      : []),
    ...pieces.slice(1).map((text): Delta => ({ type: "tool-arguments", index, text })),
  ]);

/** Extra fields of a message, when it begins or at its end. */
const phase = fc.constantFrom(undefined, { dialect: "responses" as const, fields: { phase: "commentary" } });

/** Extra fields of reasoning or of an answer, in pieces. */
const fields: fc.Arbitrary<Extra> = fc
  .record({ index: fc.nat(1), text })
  .chain((piece) =>
    fc.constantFrom<Extra>(
      { dialect: "chat", fields: { details: [piece] } },
      { dialect: "chat", fields: { tier: piece.index } },
    ),
  );

const delta: fc.Arbitrary<Delta> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant("text" as const), text, extra: phase }) },
  fc.record({ type: fc.constant("text" as const), text, logprobs: fc.constant([{ token: "t", logprob: -1 }]) }),
  fc.record({ type: fc.constant("refusal" as const), text, extra: phase }),
  { weight: 2, arbitrary: fc.record({ type: fc.constant("reasoning" as const), text }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("reasoning" as const), text, summary: fc.nat(1) }) },
  fc.record({ type: fc.constant("reasoning-seal" as const), encrypted: text }),
  fc.record({ type: fc.constant("reasoning-extra" as const), extra: fields }),
  text.map((url) => ({
    type: "message-extra" as const,
    extra: { dialect: "chat" as const, fields: { images: [{ url }] } },
  })),
  fc.record({ type: fc.constant("annotation" as const), annotation }),
  fc.record({
    type: fc.constant("other" as const),
    extra: fc.constantFrom<Extra>(
      { dialect: "responses", fields: { type: "web_search_call", id: "ws_1", status: "completed", action: {} } },
      { dialect: "responses", fields: { type: "mcp_list_tools", server_label: "wiki", tools: [] } },
    ),
  }),
  fc.record({ type: fc.constant("message-end" as const), extra: phase }),
  fc.record({
    type: fc.constant("finish" as const),
    reason: fc.constantFrom("stop", "length", "content-filter", "tool-calls"),
  }),
  fc.record({
    type: fc.constant("notes" as const),
    notes: fc.record(
      {
        fingerprint: fc.constantFrom("fp_1", "fp_2"),
        serviceTier: fc.constantFrom("flex", "scale"),
        extra: fields,
      },
      { requiredKeys: ["fingerprint", "serviceTier"] },
    ),
  }),
  fc.record({
    type: fc.constant("usage" as const),
    usage: fc.record({
      inputTokens: fc.nat(),
      cachedTokens: fc.nat(),
      outputTokens: fc.nat(),
      reasoningTokens: fc.nat(),
    }),
  }),
);

const batch = fc.array(fc.oneof({ weight: 3, arbitrary: delta.map((one) => [one]) }, call), { maxLength: 6 });

export const batches = fc.array(
  batch.map((deltas) => deltas.flat()),
  { maxLength: 6 },
);
