/** Properties of every answer through a real HTTP server: streamed, replayed, whole, and in the other dialect. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { authorization, createBox } from "../scripted.ts";
import { fromItem, gatherChunks } from "./chunks.ts";
import { batches } from "./deltas.ts";
import { checkStream, isCall, type WireResponse } from "./grammar.ts";

interface Play {
  readonly batches: readonly (readonly Delta[])[];
  readonly fails: boolean;
}

const play = fc.record({ batches: batches.filter((each) => each.length > 0), fails: fc.boolean() });
const include = fc.constantFrom([], ["reasoning.encrypted_content"]);
const reasoning = fc.constantFrom({}, { summary: "auto" });

test("a streamed answer is well formed, stored as it was sent, and the same in both dialects, wherever it fails", async (context) => {
  let current: Play = { batches: [], fails: false };
  const box = createBox(context, async function* () {
    yield* current.batches;
    if (current.fails) throw new GatewayError("adapter_error", "It broke.");
  });
  const address = await box.listen();
  const headers = { authorization, "content-type": "application/json" };
  const get = async (path: string) => (await fetch(`${address}${path}`, { headers })).text();
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${address}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: answer.status, text: await answer.text() };
  };

  await fc.assert(
    fc.asyncProperty(play, include, reasoning, async (next, include, reasoning) => {
      current = next;
      const asked = { model: "m", input: "hi", include, reasoning };
      const { text: stream } = await post("/v1/responses", { ...asked, stream: true });
      const { response } = checkStream(stream);
      const { text: chat } = await post("/v1/chat/completions", {
        model: "m",
        messages: [{ role: "user", content: "hi" }],
        stream: true,
      });
      assert.deepEqual(saidInChat(chat), saidIn(response));

      const whole = await post("/v1/responses", asked);
      const again = `/v1/responses/${response["id"]}`;
      assert.deepEqual(JSON.parse(await get(again)), response);
      assert.equal(await get(`${again}?stream=true`), stream);
      if (next.fails) {
        assert.equal(whole.status, 502);
        return;
      }
      assert.deepEqual(normalised(JSON.parse(whole.text)), normalised(response));
      assert.equal(await get(`/v1/responses/${JSON.parse(whole.text).id}`), whole.text);
    }),
    { numRuns: 100 },
  );
});

/** What a caller receives, independent of the dialect. */
function saidIn({ output }: WireResponse) {
  const parts = output.flatMap((item) => (item.type === "message" ? (item.content ?? []) : []));
  return {
    content: parts.map((part) => part["text"] ?? "").join(""),
    refusal: parts.map((part) => part["refusal"] ?? "").join(""),
    calls: output.filter(isCall).map((item) => withoutId(fromItem(item))),
  };
}

function saidInChat(stream: string) {
  const { content, refusal, calls } = gatherChunks(stream).message;
  return { content, refusal, calls: calls.map(({ added: _added, ...call }) => withoutId(call)) };
}

/** The ids of calls are derived from the response's where the model gives none. */
function withoutId<Call extends { readonly id: unknown }>({ id: _id, ...call }: Call): Omit<Call, "id"> {
  return call;
}

/** Ids and times differ from one request to the next. */
function normalised(response: object): unknown {
  const text = JSON.stringify(response).replaceAll(/[0-9a-f]{48}/g, "ID");
  return JSON.parse(text.replaceAll(/"(created|completed)_at":\d+/g, '"$1_at":0'));
}
