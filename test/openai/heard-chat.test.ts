/** What callers of both endpoints get of an answer on the chat wire, in the dialects that servers have of it. */
import { test } from "node:test";
import { answerEvents, answerJson, chunk, type Script } from "../harness/upstream.ts";
import { type Answer, type Fields, judge, sends, shareScene, whole } from "./scene.ts";

const open = shareScene();

function hears(what: string, expected: Partial<Answer>, ...scripts: readonly Script[]): void {
  test(`chat wire: ${what}`, async () => {
    await judge(await open(), "chat", expected, ...scripts);
  });
}

const stop = chunk({}, "stop");
const hi = { content: "Hi" };
const said = { text: "Hi", finish: "stop" };

/** Several pieces of a message, and its end. */
function pieces(...deltas: readonly Fields[]): Script {
  return answerEvents(...deltas.map((delta) => chunk(delta)), stop);
}

/** A whole message. */
function message(fields: Fields, ...more: readonly Fields[]): Script {
  return answerJson({ ...whole(fields), ...more[0] });
}

const paris = { text: "Paris.", reasoning: "France, so" };
const parts = { content: [{ type: "text", text: "H" }, { type: "reference" }, null, { type: "text", text: "i" }] };
const other = { choices: [{ index: 1, delta: { content: "other" } }] };
const citation = { type: "url_citation", url: "https://a.test/", title: "A", start_index: 0, end_index: 2 };
const { type, ...url_citation } = citation;
const noted = { annotations: [{ type, url_citation }] };

hears(
  "text arrives whole",
  said,
  message(hi),
  pieces({ role: "assistant", content: "" }, { content: "H" }, { content: "i" }),
);
hears(
  "a whole answer in place of a stream is read once",
  said,
  answerEvents(whole(hi)),
  answerEvents(chunk(hi), whole(hi)),
);
hears("an answer without a word is empty", { text: "", finish: "stop" }, message({ content: "" }), pieces());
hears("a refusal is a refusal", { text: "", refusal: "No." }, message({ refusal: "No." }), pieces({ refusal: "No." }));
hears("content in parts is their text", said, message(parts), pieces(parts));
hears("only the first choice is told", said, answerEvents(other, chunk(hi), stop));
hears("fields of a name that errors have do not make an answer one", said, message(hi, { message: "ok", code: 0 }));

for (const field of ["reasoning_content", "reasoning", "reasoning_text"]) {
  const fields = { [field]: "France, so", content: "Paris." };
  hears(`reasoning is read in the field ${field}`, paris, message(fields), pieces(fields));
}
hears(
  "annotations follow their text, even if they came before, and in either form",
  { text: "Hi", annotations: [citation] },
  message({ ...hi, ...noted }),
  pieces(hi, noted),
  pieces({ annotations: [citation] }, hi),
);

const logprob = { token: "Hi", logprob: -0.5, bytes: [72, 105], top_logprobs: [] };
const logprobs = { content: [logprob, logprob] };

hears(
  "log probabilities are told as they are",
  { logprobs: [logprob, logprob] },
  answerJson({ choices: [{ index: 0, message: hi, logprobs, finish_reason: "stop" }] }),
  answerEvents(chunk(hi, null, { logprobs }), stop),
);

const finishes: Readonly<Record<string, string>> = {
  stop: "stop, eos, end_turn, constructor, __proto__",
  length: "length, max_tokens, MAX_TOKENS, model_length, model_context_window_exceeded",
  content_filter: "content_filter, content_filter: RECITATION, SAFETY, PROHIBITED_CONTENT, sensitive, refusal",
};

for (const [finish, words] of Object.entries(finishes)) {
  const scripts = words.split(", ").map((word) => answerEvents(chunk(hi, word)));
  hears(`a finish reason is ${finish} in the words of ${words}`, { ...said, finish }, ...scripts);
}

const tokens = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 };
const reasoned = { completion_tokens_details: { reasoning_tokens: 3 } };

/** [what the server counts, what callers get: input, of these cached, output, of these reasoning]. */
const counts: readonly (readonly [what: string, usage: Fields, told: readonly number[]])[] = [
  ["all of it", { ...tokens, ...reasoned, prompt_tokens_details: { cached_tokens: 4 } }, [12, 4, 5, 3]],
  ["no details", tokens, [12, 0, 5, 0]],
  ["numbers that are none", { prompt_tokens: -3, completion_tokens: 1.5, total_tokens: "7" }, [0, 0, 0, 0]],
];

for (const [what, usage, told] of counts) {
  const inChoice = { choices: [{ index: 0, delta: hi, finish_reason: "stop", usage }] };
  const after = answerEvents(chunk(hi), stop, { choices: [], usage });
  hears(`usage with ${what} is counted`, { usage: told }, message(hi, { usage }), after, answerEvents(inChoice));
}

const data = (...events: readonly unknown[]) => events.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("");
const stream = `${data(chunk(hi), stop)}data: [DONE]\n\n`;
const json = JSON.stringify(whole(hi));
const chatty = `: hello\n\nevent: x\nid: 1\n${data(chunk(hi))}: PROCESSING\n\nretry: 1\n\n${data(stop)}data: [DONE]\n\n`;

/** Bodies of a stream, or with the content type that is named. */
const framings: readonly (readonly [what: string, body: string, type?: string])[] = [
  ["lines that end with \\r\\n", stream.replaceAll("\n", "\r\n")],
  ["comments and other fields between events", chatty],
  ["no blank after the colon", stream.replaceAll("data: ", "data:")],
  ["a byte order mark before a stream", `\ufeff${stream}`],
  ["a byte order mark before JSON", `\ufeff${json}`, "application/json"],
  ["an event without data", `data:\n\n${stream}`],
  ["no [DONE] after its finish reason", data(chunk(hi), stop)],
  ["no line break after [DONE]", stream.trimEnd()],
  ["JSON where events were announced", json],
  ["a JSON type of its own", json, "application/vnd.house+json; charset=utf-8"],
  ["no content type of a stream", chatty, ""],
  ["no content type of JSON", json, ""],
];

for (const [what, body, contentType = "text/event-stream"] of framings)
  hears(`an answer with ${what} is read`, said, sends(contentType, body));

hears("interim answers are passed over", said, (received, response) => {
  response.writeProcessing();
  response.writeEarlyHints({ link: "</x>" });
  return message(hi)(received, response);
});

const bytes = Buffer.from('data: {"choices":[{"delta":{"content":"é€😀"},"finish_reason":"stop"}]}\r\n\r\n');

hears("a character or a line that is split anywhere arrives intact", { text: "é€😀" }, async (_, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const byte of bytes) {
    response.write(Buffer.of(byte));
    await new Promise(setImmediate);
  }
  response.end();
});
