/** Images and files given by URL: fetched for models that do not accept URLs, within the operator's rules. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { fetchFiles } from "../../src/adapters/ai-sdk/media.ts";
import { writePrompt } from "../../src/adapters/ai-sdk/prompt.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item, Part } from "../../src/core/item.ts";
import { startGateway } from "../gateway.ts";
import { type Script, startUpstream } from "../upstream.ts";
import { tell, tellWell } from "../whole/talk.ts";
import { type AiSdkOptions, answerStream, createAdapter, google, root } from "./ai-sdk-wires.ts";

const allowed = { allow_private: ["127.0.0.1"] };
const sendPicture: Script = (_, response) =>
  void response.writeHead(200, { "content-type": "image/png" }).end("PICTURE");

interface Content {
  readonly parts: readonly { readonly text?: string; readonly inlineData?: { mimeType: string; data: string } }[];
}

/** A model that accepts no URLs, and a server that serves images. */
async function startBoth(context: TestContext, pictures: Script = sendPicture) {
  const model = await startUpstream(answerStream(google.begin(), google.say(["Nice."]), google.end("stop")));
  const gallery = await startUpstream(pictures);
  context.after(() => Promise.all([model.close(), gallery.close()]));
  return {
    gallery,
    model,
    shown: () => (model.received.at(-1)!.json as { readonly contents: readonly Content[] }).contents,
    async ask(items: readonly Item[], fetch_media: AiSdkOptions["fetch_media"] = allowed) {
      const adapter = createAdapter(google, model.url, { fetch_media });
      const turn = { id: "resp_1", model: "model-1", items, settings: { tools: [] }, stream: true };
      const remarks: string[] = [];
      const collectRemark = (remark: { readonly type: string; readonly what?: string }) =>
        void remarks.push(String(remark.what));
      for await (const _ of adapter.stream(turn, new AbortController().signal, collectRemark)); // its answer does not matter here
      return remarks;
    },
  };
}

function user(...content: Part[]): Item {
  return { type: "message", role: "user", content };
}

const answer: Item = { type: "message", role: "assistant", content: "Nice." };

async function refusalOf(pending: Promise<unknown>): Promise<GatewayError> {
  const thrown: unknown = await pending.then(
    () => assert.fail("It was not refused."),
    (failure: unknown) => failure,
  );
  assert.ok(thrown instanceof GatewayError, String(thrown));
  assert.equal(thrown.code, "invalid_value");
  assert.equal(thrown.part?.type, "image");
  return thrown;
}

for (const on of ["chat", "responses"] as const) {
  test(`${on}: an image URL is fetched where the operator allows it, and otherwise refused with its path`, async (context) => {
    const { gallery, model, shown } = await startBoth(context);
    const url = `${gallery.url}/cat.jpg`;
    const part = on === "chat" ? { type: "image_url", image_url: { url } } : { type: "input_image", image_url: url };
    const look = { type: on === "chat" ? "text" : "input_text", text: "Look:" };
    const say = [{ role: "user", content: [look, part] }];
    const toGateway = async (fetch_media: unknown) => {
      const options = google.toOptions(model.url);
      const adapters = { model: { type: "ai-sdk", package: google.packageName, options, fetch_media } };
      return (await startGateway(context, { adapters, sessions: { store: "memory:" } })).address;
    };
    await tellWell(await toGateway(allowed), { on, say });
    const data = Buffer.from("PICTURE").toString("base64");
    assert.deepEqual(shown()[0]?.parts.slice(1), [{ inlineData: { mimeType: "image/png", data } }]);

    const refused = await tell(await toGateway({}), { on, say });
    assert.equal(refused.status, 400);
    assert.equal(
      refused.error?.["param"],
      on === "chat" ? "messages[0].content[1].image_url.url" : "input[0].content[1].image_url",
    );
    assert.match(String(refused.error?.["message"]), /not a public internet address/);
    assert.equal(gallery.received.length, 1);
    assert.equal(model.received.length, 1);
  });
}

test("a URL is refused with a hint to send a data: URL when fetching is disabled", async (context) => {
  const { ask, gallery } = await startBoth(context);
  const refused = await refusalOf(ask([user({ type: "image", url: gallery.url })], { ...allowed, enabled: false }));
  assert.match(refused.message, /as a data: URL/);
  assert.equal(gallery.received.length, 0);
});

test("a URL is passed on if its model accepts such URLs of such media, and a refusal points to the newest part with it", async () => {
  const limits = { maxBytes: 3, timeoutMs: 1_000, allowPrivate: false };
  const rules = { ...limits, isEnabled: false, maxCount: 2 };
  const fetch = async (items: readonly Item[], supportedUrls: Readonly<Record<string, readonly RegExp[]>> = {}) => {
    const prompt = writePrompt(undefined, items, limits);
    const signal = new AbortController().signal;
    assert.equal(await fetchFiles(prompt, items, { supportedUrls }, rules, () => {}, signal), prompt);
  };
  const url = "https://example.com/cat.png";
  const picture = { type: "image", url } as const;
  for (const type of ["*", "*/*", "image/*", "IMAGE/*", "image/png", "IMAGE/PNG"]) {
    await fetch([user(picture)], { [type]: [/^http:/, /cat/g] });
    // A global pattern remembers where it has matched.
    await fetch([user(picture, picture)], { [type]: [/cat/g] });
  }
  for (const type of ["image/pn", "image/jpeg", "application/*"]) {
    await refusalOf(fetch([user(picture)], { [type]: [/cat/] }));
  }
  await refusalOf(fetch([user(picture)], { "*": [/dog/] }));

  const call = { type: "tool-call", kind: "function", callId: "a", name: "look", arguments: "{}" } as const;
  const output = { type: "tool-output", kind: "function", callId: "a" } as const;
  const [given, sent] = [{ type: "file", url } as const, { type: "file", data: url } as const];
  for (const part of [picture, given, sent]) {
    for (const items of [[user(picture, part)], [user(picture), call, { ...output, output: [part] }]]) {
      await assert.rejects(fetch(items), (thrown) => thrown instanceof GatewayError && thrown.part === part);
    }
  }
});

test("at most max_count URLs are fetched for a turn, and a repeated URL is fetched once", async (context) => {
  const { ask, gallery } = await startBoth(context);
  const pictures = (...names: string[]) =>
    user(...names.map((name): Part => ({ type: "image", url: `${gallery.url}/${name}` })));
  const rules = { ...allowed, max_count: 2 };
  assert.match((await refusalOf(ask([pictures("a", "b", "c")], rules))).message, /more than 2 URLs/);
  assert.equal(gallery.received.length, 0);
  assert.deepEqual(await ask([pictures("a", "b", "a")], rules), []);
  assert.equal(gallery.received.length, 2);
  const { host } = new URL(gallery.url);
  assert.deepEqual(await ask([pictures("c"), answer, pictures("d"), answer, pictures("e")], rules), [
    `file from ${host}`,
  ]);
  assert.deepEqual(new Set(gallery.received.slice(2).map(({ path }) => path)), new Set(["/d", "/e"]));
  assert.deepEqual(await ask([pictures("f", "e"), answer, pictures("e")], rules), []);
});

test("an image of an earlier turn that is gone or exceeds the limit is left out and reported; a new one is refused", async (context) => {
  const { ask, gallery, shown } = await startBoth(context, (received, response) =>
    received.path === "/new" ? sendPicture(received, response) : void response.writeHead(404).end(),
  );
  const old = user({ type: "image", url: `${gallery.url}/old` });
  const fresh = user({ type: "image", url: `${gallery.url}/new` });
  const { host } = new URL(gallery.url);
  assert.deepEqual(await ask([old, answer, fresh]), [`file from ${host}`]);
  assert.match(shown()[0]?.parts[0]?.text ?? "", /can no longer be fetched/);
  assert.equal(shown()[2]?.parts[0]?.inlineData?.mimeType, "image/png");
  assert.deepEqual(await ask([old, answer, fresh], { ...allowed, max_count: 1 }), [`file from ${host}`]);
  assert.match((await refusalOf(ask([fresh, answer, old]))).message, /status 404/);
  assert.deepEqual(await ask([fresh, answer, user({ type: "text", text: "And now?" })]), []);
  assert.equal(shown()[0]?.parts[0]?.inlineData?.mimeType, "image/png");
});

test("an image that the assistant showed by URL is fetched like any earlier one", async (context) => {
  const { ask, gallery, shown } = await startBoth(context, (received, response) =>
    received.path === "/here" ? sendPicture(received, response) : void response.writeHead(404).end(),
  );
  const drawn = (name: string): Item => ({
    type: "message",
    role: "assistant",
    content: [{ type: "image", url: `${gallery.url}/${name}` }],
  });
  const again = user({ type: "text", text: "Again!" });
  assert.deepEqual(await ask([again, drawn("here"), again]), []);
  assert.equal(shown()[1]?.parts[0]?.inlineData?.mimeType, "image/png");
  assert.deepEqual(await ask([again, drawn("gone"), again]), [`file from ${new URL(gallery.url).host}`]);
  assert.match(shown()[1]?.parts[0]?.text ?? "", /can no longer be fetched/);
});

test("data: URLs are checked against the same rules", async (context) => {
  const { ask, shown } = await startBoth(context);
  const rules = { max_bytes: 3 };
  await ask([user({ type: "image", url: "data:image/png;base64,AAAA" })], rules);
  assert.deepEqual(shown()[0]?.parts, [{ inlineData: { mimeType: "image/png", data: "AAAA" } }]);
  for (const [url, why] of [
    ["data:image/png;base64,AAAAAA", /larger than 3 bytes/],
    ["data:application/zip;base64,AAAA", /type application\/zip/],
    ["data:image/png;base64,!!!", /claims to be base64, but is not/],
  ] as const) {
    assert.match((await refusalOf(ask([user({ type: "image", url })], rules))).message, why);
  }
});

test("an invalid network in allow_private is reported when the adapter is created", () => {
  assert.throws(
    () => createAdapter(google, root, { fetch_media: { allow_private: ["everything"] } }),
    /'everything' is neither/,
  );
});
