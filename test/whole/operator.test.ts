/** The operator over HTTP, beside clients that store turns in sessions and outside of them. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { openPortico, type PorticoSettings } from "../../src/index.ts";
import { makeFolder } from "../gateway.ts";

const general = "sk-general-0123456789";
const tokens = { notes: "sk-notes-0123456789abc", wiki: "sk-wiki-0123456789abcd" };

interface Runtime {
  readonly folder: string;
  readonly logged: string[];
  as(name: keyof typeof tokens): OpenAI;
  call(path: string, method?: string): Promise<Response>;
}

async function open(context: TestContext): Promise<Runtime> {
  const folder = makeFolder(context);
  const logged: string[] = [];
  const write = (fields: object, message: string) => void logged.push(JSON.stringify(fields) + message);
  const settings: PorticoSettings = {
    gateway: {
      auth: { token: general },
      http: {
        port: 0,
        endpoints: { compat_chat: true, compat_responses: true },
        tokens: Object.entries(tokens).map(([name, token]) => ({ name, token })),
      },
      adapters: { echo: { type: "echo" } },
    },
  };
  const portico = await openPortico(settings, { folder, env: {}, log: { info: write, error: write } });
  context.after(() => portico.close());
  const { address } = portico;
  return {
    folder,
    logged,
    as: (name) => new OpenAI({ baseURL: `${address}/v1`, apiKey: tokens[name], maxRetries: 0 }),
    call: (path, method = "GET") =>
      fetch(`${address}/operator/${path}`, { method, headers: { authorization: `Bearer ${general}` } }),
  };
}

async function idsAt({ call }: Runtime, path: string): Promise<readonly string[]> {
  const { data } = (await (await call(path)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

test("a response and a chat completion stored outside of sessions are listed, shown, exported and deleted", async (context) => {
  const runtime = await open(context);
  const client = runtime.as("notes");
  const first = await client.responses.create({ model: "echo", input: "Plant beans." });
  const second = await client.responses.create({ model: "echo", input: "When?", previous_response_id: first.id });
  const messages = [{ role: "user", content: "Plant peas." } as const];
  const chat = await client.chat.completions.create({ model: "echo", store: true, messages });
  const chatTurn = chat.id.replace("chatcmpl-", "resp_");
  assert.deepEqual(await idsAt(runtime, "sessions"), []);
  assert.deepEqual(await idsAt(runtime, "sessions?outside=true"), [chatTurn, first.id]);
  assert.deepEqual(await idsAt(runtime, "sessions?outside=true&owner=wiki"), []);

  const shown = (await (await runtime.call(`sessions/${chat.id}`)).json()) as { object: string; turns: unknown[] };
  assert.deepEqual([shown.object, shown.turns.length], ["thread", 1]);
  assert.match(JSON.stringify(shown.turns), /Plant peas\./);
  const archive = await (await runtime.call(`export?session=${second.id}`)).text();
  assert.match(archive, /Plant beans\..*When\?/s);
  assert.doesNotMatch(archive, /peas/);

  assert.deepEqual(await (await runtime.call(`sessions/${chat.id}`, "DELETE")).json(), {
    id: chatTurn,
    object: "thread",
    deleted: true,
  });
  assert.equal((await runtime.call(`sessions/${first.id}`, "DELETE")).status, 200);
  assert.deepEqual(await idsAt(runtime, "sessions?outside=true"), []);
  for (const { id } of [first, second]) await assert.rejects(client.responses.retrieve(id), { status: 404 });
  assert.equal((await runtime.call(`sessions/${first.id}`, "DELETE")).status, 404);
});

test("a user's sessions are found and deleted by its name, for every owner or one, and the name is neither stored nor logged", async (context) => {
  const runtime = await open(context);
  const user = "ann-of-the-garden";
  const messages = [{ role: "user", content: "Hello." } as const];
  for (const name of ["notes", "wiki"] as const) {
    for (const who of [user, "ben"]) {
      await runtime.as(name).chat.completions.create({ model: "echo", messages, user: who });
    }
  }
  const garden = { headers: { "X-Session-Id": "shed" } };
  await runtime.as("wiki").chat.completions.create({ model: "echo", messages }, garden);
  const all = await idsAt(runtime, "sessions");
  const ofAnn = await idsAt(runtime, `sessions?user=${user}`);
  assert.deepEqual([all.length, ofAnn.length], [5, 2]);
  const [ofNotes] = await idsAt(runtime, `sessions?user=${user}&owner=notes`);
  assert.ok(ofAnn.includes(ofNotes!));
  const hint = encodeURIComponent("header:X-Session-Id=shed");
  assert.equal((await idsAt(runtime, `sessions?hint=${hint}`)).length, 1);

  const archive = await (await runtime.call(`export?user=${user}`)).text();
  assert.equal(archive.match(/"type":"session"/g)?.length, 2);
  for (const [path, method, status] of [
    ["sessions", "DELETE", 400],
    ["sessions?owner=notes", "DELETE", 400],
    [`sessions?user=${user}&owner=`, "DELETE", 400],
    [`sessions?user=${user}&ownr=notes`, "DELETE", 400],
    ["sessions?user=", "DELETE", 400],
    ["sessions?hint=shed", "GET", 400],
    [`sessions?user=${user}&hint=${hint}`, "GET", 400],
    [`sessions?user=${user}&outside=true`, "GET", 400],
    ["sessions?outside=yes", "GET", 400],
    ["export?owner=notes", "GET", 400],
    [`export?user=${user}&session=${all[0]}`, "GET", 400],
    ["export?user=nobody", "GET", 404],
  ] as const) {
    assert.equal((await runtime.call(path, method)).status, status, path);
  }
  assert.deepEqual(await idsAt(runtime, "sessions"), all);

  assert.deepEqual(await (await runtime.call(`sessions?user=${user}&owner=notes`, "DELETE")).json(), {
    object: "list",
    data: [{ id: ofNotes, object: "session", deleted: true }],
  });
  await runtime.call(`sessions?user=${user}`, "DELETE");
  const left = await idsAt(runtime, "sessions");
  assert.deepEqual(
    left,
    all.filter((id) => !ofAnn.includes(id)),
  );
  const dataFolder = join(runtime.folder, ".portico");
  const files = readdirSync(dataFolder).map((name) => readFileSync(join(dataFolder, name), "latin1"));
  assert.ok(runtime.logged.length > 10);
  for (const text of [...files, ...runtime.logged]) assert.ok(!text.includes(user));
});
