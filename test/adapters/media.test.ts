/** Images given by URL to a model that takes none: fetched by the gateway, and only from where the operator allows it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { tell, tellWell } from "../harness/client.ts";
import { endAfter, openGateway } from "../harness/house.ts";
import { type Script, startUpstream } from "../harness/upstream.ts";
import { byName, share, user } from "./scene.ts";
import { answerStream, google, toAdapter } from "./wires.ts";

const own = { allow_private: ["127.0.0.1"] };
const [off, small, hasty] = [
  { ...own, enabled: false },
  { ...own, max_bytes: 100 },
  { ...own, timeout_ms: 60 },
];
const rules = { closed: {}, open: own, off, small, hasty };

/** What the server of pictures does at each path. */
const places: Readonly<Record<string, Script>> = {
  "/png": (_, response) => void response.writeHead(200, { "content-type": "Image/PNG; x=y" }).end("PICTURE"),
  "/zip": (_, response) => void response.writeHead(200, { "content-type": "application/zip" }).end("x"),
  "/gone": (_, response) => void response.writeHead(404).end(),
  "/endless": (_, response) => {
    response.writeHead(200, { "content-type": "image/png" });
    const more = (): void => void (response.destroyed || response.write(Buffer.alloc(60), more));
    more();
  },
  "/silent": () => {},
  "/away": redirectTo(() => "/png"),
  "/loop": redirectTo(() => "/loop"),
  "/inwards": redirectTo(({ headers }) => `http://127.0.0.2:${String(headers.host).split(":")[1]}/png`),
};

function redirectTo(where: (received: Parameters<Script>[0]) => string): Script {
  return (received, response) => void response.writeHead(302, { location: where(received) }).end();
}

interface Shown {
  readonly contents: readonly { readonly parts: readonly { readonly inlineData?: object }[] }[];
}

const open = share(async (scope) => {
  const model = await startUpstream(answerStream(google.begin(), google.say(["Nice."]), google.end("stop")));
  const gallery = await startUpstream((asked, response) => places[asked.path.split("?")[0]!]!(asked, response));
  for (const server of [model, gallery]) endAfter(scope, () => server.close());
  const adapters = Object.fromEntries(
    Object.entries(rules).map(([name, rule]) => [
      name,
      toAdapter(google, model.url, { retries: 0, fetch_media: rule }),
    ]),
  );
  const { address } = await openGateway(scope, { gateway: { adapters, ...byName(Object.keys(adapters)) } });
  const parts = () => (model.received.at(-1)!.json as Shown).contents.map((one) => one.parts);
  return { address, model, gallery, parts };
});

const look = { type: "text", text: "Look:" };
const picture = (url: string) => user([look, { type: "image_url", image_url: { url } }]);
const data = Buffer.from("PICTURE").toString("base64");

for (const path of ["/png", "/away"]) {
  test(`a picture at ${path} is fetched and sent as content, once though it is shown twice`, async () => {
    const { address, gallery, parts } = await open();
    const url = gallery.url + path;
    const before = gallery.received.length;
    const wish = { more: { model: "open" } } as const;
    await tellWell(address, {
      ...wish,
      on: "chat",
      say: [picture(url), { role: "assistant", content: "Nice." }, picture(url)],
    });
    const asked = path === "/away" ? 2 : 1;
    assert.equal(gallery.received.length - before, asked);
    assert.deepEqual(parts()[0]![1], { inlineData: { mimeType: "image/png", data } });
    const content = [{ type: "input_image", image_url: url }];
    await tellWell(address, { ...wish, on: "responses", say: [user(content)] });
    assert.deepEqual(parts()[0], [{ inlineData: { mimeType: "image/png", data } }]);
  });
}

/** `here` stands for the server's address. */
for (const [what, model, url, why] of [
  ["a private address", "closed", "http://127.0.0.1:port/png", /not a public internet address/],
  ["a private address as a number", "closed", "http://2130706433:port/png", /not a public internet address/],
  ["a private IPv6 address", "closed", "http://[::1]:port/png", /not a public internet address/],
  ["a mapped IPv6 address", "closed", "http://[::ffff:127.0.0.1]:port/png", /not a public internet address/],
  ["the cloud's metadata address", "open", "http://169.254.169.254/latest?secret", /not a public internet address/],
  ["a name that resolves to a private address", "closed", "http://localhost:port/png", /not a public internet address/],
  ["a private address beside the allowed one", "open", "http://127.0.0.2:port/png", /not a public internet address/],
  ["a redirect to a private address", "open", "http://127.0.0.1:port/inwards", /127\.0\.0\.2/],
  ["too many redirects", "open", "http://127.0.0.1:port/loop", /cannot be reached/],
  ["a password in the URL", "open", "http://user:secret@127.0.0.1:port/png", /./],
  ["a type that no model reads", "open", "http://127.0.0.1:port/zip", /type/],
  ["an answer of 404", "open", "http://127.0.0.1:port/gone?secret", /404/],
  ["bytes without an end", "small", "http://127.0.0.1:port/endless", /larger than 100/],
  ["silence", "hasty", "http://127.0.0.1:port/silent", /60 ms/],
  ["anything while fetching is off", "off", "http://127.0.0.1:port/png", /data: URL/],
  ["a data: URL of another type", "open", "data:application/zip;base64,AAAA", /application\/zip/],
  ["a data: URL that is too large", "small", `data:image/png;base64,${"AAAA".repeat(50)}`, /larger than 100/],
  ["a data: URL that is no base64", "open", "data:image/png,PICTURE", /base64/],
] as const) {
  test(`${what} is refused as a 400 that names the part, and the model is not asked`, async () => {
    const { address, model: server, gallery } = await open();
    const before = [server.received.length, gallery.received.filter(({ path }) => path === "/png").length];
    const say = [{ role: "system", content: "Hi" }, picture(url.replace("port", String(gallery.port)))];
    const { status, error } = await tell(address, { on: "chat", say, more: { model } });
    assert.deepEqual([status, error?.["param"]], [400, "messages[1].content[1]"]);
    assert.match(String(error?.["message"]), why);
    assert.doesNotMatch(String(error?.["message"]), /secret/);
    assert.deepEqual([server.received.length, gallery.received.filter(({ path }) => path === "/png").length], before);
  });
}
