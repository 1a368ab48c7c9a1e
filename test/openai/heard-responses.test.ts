/** What callers of both endpoints get of an answer on the responses wire. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerEvents, answerJson, type Script } from "../harness/upstream.ts";
import { added, type Answer, completed, done, event, type Fields, item, judge, respond } from "./scene.ts";
import { responseOf, shareScene, textDelta as text } from "./scene.ts";

const open = shareScene();

function hears(what: string, expected: Partial<Answer>, ...scripts: readonly Script[]): void {
  test(`responses wire: ${what}`, async () => {
    await judge(await open(), "responses", expected, ...scripts);
  });
}

/** Items as they are streamed piece by piece, as whole items, only in the last event, and as JSON. */
function forms(items: readonly Fields[], ...streamed: readonly Fields[]): readonly Script[] {
  const finished = items.map((one, index) => done(index, one));
  return [
    answerEvents(...streamed, ...finished, completed(items)),
    answerEvents(...finished, completed(items)),
    answerEvents(completed(items)),
    answerJson(responseOf(items)),
  ];
}

const piece = (name: string, index: number, delta: string) =>
  event(name, { output_index: index, content_index: 0, delta });
const written = (delta: string) => piece("function_call_arguments.delta", 0, delta);
const summary = (section: number, delta: string) =>
  event("reasoning_summary_text.delta", { output_index: 0, summary_index: section, delta });

const hello = item.message("Hello");
const said = { text: "Hello" };
const refusal = { ...hello, content: [{ type: "refusal", refusal: "No." }] };
const citation = { type: "url_citation", url: "https://a.test/", title: "A", start_index: 0, end_index: 2 };
const noted = event("output_text.annotation.added", { output_index: 0, content_index: 0, annotation: citation });
const cited = item.message("Hello", { annotations: [citation] });
const look = item.call("call_a", "look", '{"at":1}');
const begun = item.call("call_a", "look", "");
const shell = item.custom("call_b", "shell", "ls");
const typed = [added(1, item.custom("call_b", "shell", "")), piece("custom_tool_call_input.delta", 1, "ls")];
const thought = item.reasoning(["One."], { content: [{ type: "reasoning_text", text: "Hm." }] });
const called = { calls: ['look {"at":1}'], finish: "tool_calls" };
const unknown = [{ type: "keepalive" }, event("in_the_making", { piece: 1 })];

hears("text arrives whole", { ...said, finish: "stop" }, ...forms([hello], text(0, "Hel"), text(0, "lo")));
hears("another text at the end changes nothing", { text: "Hi" }, answerEvents(text(0, "Hi"), completed([hello])));
hears("a refusal is a refusal", { refusal: "No.", text: "" }, ...forms([refusal], piece("refusal.delta", 0, "No.")));
hears(
  "annotations follow their text",
  { ...said, annotations: [citation] },
  ...forms([cited], text(0, "Hello"), noted),
);
hears("an annotation may come early", { ...said, annotations: [citation] }, ...forms([cited], noted, text(0, "Hello")));
hears(
  "raw reasoning and its summary are told",
  { ...said, reasoning: "Hm.One." },
  ...forms([thought, hello], piece("reasoning_text.delta", 0, "Hm."), summary(0, "One.")),
);
hears(
  "calls and free text are told, also from interleaved pieces",
  { calls: ['look {"at":1}', "shell ls"], finish: "tool_calls" },
  ...forms([look, shell], added(0, begun), written('{"at"'), ...typed, written(":1}")),
);
hears("arguments may be told at the end of their call", called, ...forms([look], added(0, begun)));
hears("unknown events are passed over", said, answerEvents(...unknown, text(0, "Hello"), completed([hello])));
hears("what comes after the end is not read", said, answerEvents(completed([hello]), text(1, "more")));
hears("an answer without an item is empty", { text: "", finish: "stop" }, ...forms([]));

const limits = { max_output_tokens: "length", content_filter: "content_filter", some_other_limit: "length" };

for (const [reason, finish] of Object.entries(limits)) {
  const details = { status: "incomplete", incomplete_details: { reason } };
  const cut = responseOf([{ ...hello, status: "incomplete" }], details);
  const streamed = answerEvents(text(0, "Hello"), event("incomplete", { response: cut }));
  hears(`an answer that is cut by ${reason} ends with ${finish}`, { ...said, finish }, answerJson(cut), streamed);
}

const logprob = { token: "Hello", logprob: -0.5, bytes: [72], top_logprobs: [] };
const sure = item.message("Hello", { logprobs: [logprob] });
const input = { input_tokens: 12, input_tokens_details: { cached_tokens: 4 } };
const usage = { ...input, output_tokens: 5, output_tokens_details: { reasoning_tokens: 3 }, total_tokens: 17 };

hears(
  "usage is counted, and log probabilities are told",
  { usage: [12, 4, 5, 3], logprobs: [logprob] },
  answerJson(responseOf([sure], { usage })),
  answerEvents(text(0, "Hello", { logprobs: [logprob] }), done(0, sure), completed([sure], { usage })),
);

for (const stream of [false, true]) {
  test(`responses wire: phases, tiers, moderation and summaries stay what they are, ${stream ? "streamed" : "whole"}`, async () => {
    const scene = await open();
    const items = [item.reasoning(["One.", "Two."]), { ...hello, phase: "commentary" }];
    const rest = { service_tier: "priority", moderation: { input: { type: "moderation_results" } } };
    const [first, second] = [added(0, item.reasoning([])), added(1, { ...items[1], content: [] })];
    const sections = [summary(0, "One."), summary(1, "Two.")];
    scene.plays(answerEvents(first, ...sections, done(0, items[0]!), second, text(1, "Hello"), completed(items, rest)));
    const { output, service_tier, moderation } = await respond(scene, stream);
    assert.deepEqual({ service_tier, moderation }, rest);
    assert.deepEqual([output[0]?.summary, output[1]?.["phase"]], [items[0]!["summary"], "commentary"]);
  });
}
