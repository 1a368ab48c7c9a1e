/** `portico chat`, with a gateway that runs and with none: the same sessions either way. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { toNaming } from "../../src/channel.ts";
import { openLocal } from "../../src/cli/chat/local.ts";
import type { Partner } from "../../src/cli/chat/partner.ts";
import { openRemote } from "../../src/cli/chat/remote.ts";
import type { Event } from "../../src/core/event.ts";
import { load, withHttp } from "../config/house.ts";
import { findFreePort, type Gateway, makeFolder, startGateway, token } from "../gateway.ts";
import { type Ended, runProgram, toConfig, writeConfig } from "../whole/program.ts";

/** Runs `portico chat ARGS` with these lines on its standard input. */
function chat(context: TestContext, folder: string, lines: string, ...args: readonly string[]): Promise<Ended> {
  const program = runProgram(context, folder, "chat", ...args);
  program.child.stdin?.end(lines);
  return program.ended;
}

/** What a client with the configured token is told of the session of this name, when it goes on with it. */
async function goOn({ address }: Gateway, session: string, bearer = token): Promise<string> {
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json", "x-session-id": session },
    body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "And I?" }] }),
  });
  await response.text();
  return `${response.headers.get("x-portico-history")}, ${response.headers.get("x-portico-context")}`;
}

/** What is said, and how it ended. */
async function hear(partner: Partner, content: string, signal = new AbortController().signal) {
  const events: Event[] = [];
  const question = { messages: [{ role: "user", content }], session: "terminal" } as const;
  for await (const batch of partner.ask(question, signal)) events.push(...batch);
  const text = events.map((event) => (event.type === "item-delta" ? event.text : "")).join("");
  const end = events.at(-1);
  return { text, error: end?.type === "turn-end" ? end.answer.error?.message : "no end" };
}

test("With both endpoints off, chat answers in its own process, and goes on where it ended.", async (context) => {
  const folder = makeFolder(context);
  const off = { compat_chat: false, compat_responses: false };
  writeConfig(folder, toConfig({}, { endpoints: off }));
  const first = await chat(context, folder, "Hello there!\n");
  assert.deepEqual([first.code, first.stdout], [0, "Hello there!\n"]);
  assert.equal(first.stderr, "Session terminal, in this process, model echo. /new begins another, /exit ends.\n");
  const second = await chat(context, folder, "FAIL before\nAnd again\n");
  assert.deepEqual([second.code, second.stdout], [1, "And again\n"]);
  const gateway = await startGateway(context, {}, folder);
  assert.equal(await goOn(gateway, "terminal"), "continued, 5 items");
});

test("With a gateway at the configured address, chat talks to it, and any client goes on with the session.", async (context) => {
  const folder = makeFolder(context);
  const http = { port: await findFreePort(), auth_token: token, endpoints: { compat_chat: true } };
  writeConfig(folder, JSON.stringify({ gateway: { http } }));
  const gateway = await startGateway(context, { http }, folder);
  const { code, stdout, stderr } = await chat(
    context,
    folder,
    "Hello there!\n",
    "--session",
    "garden",
    "--model",
    "rose",
  );
  assert.deepEqual([code, stdout], [0, "Hello there!\n"]);
  assert.equal(stderr, `Session garden, at ${gateway.address}, model rose. /new begins another, /exit ends.\n`);
  assert.equal(await goOn(gateway, "garden"), "continued, 3 items");
});

test("A store that another gateway has is told as such, with the way to that gateway.", async (context) => {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig());
  const gateway = await startGateway(context, {}, folder);
  const taken = await chat(context, folder, "Hello\n");
  assert.deepEqual([taken.code, taken.stdout], [1, ""]);
  assert.match(taken.stderr, /^The session store .* is in use by another gateway\..* --url\.\n$/);
  const { code, stdout } = await chat(context, folder, "Hello\n", "--url", `${gateway.address}/v1`);
  assert.deepEqual([code, stdout], [0, "Hello\n"]);
});

test("Where only digests are configured, chat asks for a file with the token, and speaks for its owner.", async (context) => {
  const folder = makeFolder(context);
  const http = {
    port: await findFreePort(),
    tokens: [{ name: "notes", token: "sk-notes-0123456789abcdef" }],
    endpoints: { compat_chat: true },
  };
  writeConfig(folder, JSON.stringify({ gateway: { http } }));
  const gateway = await startGateway(context, { http }, folder);
  const without = await chat(context, folder, "Hello\n");
  assert.equal(without.code, 1);
  assert.match(without.stderr, /--token-file/);
  writeFileSync(join(folder, "mine"), "sk-notes-0123456789abcdef\n");
  const { code, stdout } = await chat(context, folder, "Hello\n", "--token-file", "mine");
  assert.deepEqual([code, stdout], [0, "Hello\n"]);
  assert.equal(await goOn(gateway, "terminal", "sk-notes-0123456789abcdef"), "continued, 3 items");
});

test(
  "A signal stops the answer and the process.",
  { skip: process.platform === "win32" && "there is no such signal" },
  async (context) => {
    const folder = makeFolder(context);
    writeConfig(folder, toConfig({ adapters: { echo: { type: "echo", delay_ms: 400 } } }));
    const program = runProgram(context, folder, "chat");
    program.child.stdin?.write("one two three four five six seven eight nine ten\n");
    await program.said("one");
    assert.equal((await program.stop("SIGINT")).code, 130);
  },
);

test("A URL, a session and a token that make no sense are refused.", async (context) => {
  const folder = makeFolder(context);
  assert.equal((await chat(context, folder, "", "--url", "example")).code, 2);
  assert.equal((await chat(context, folder, "", "--session", "a\nb")).code, 2);
  const { code, stderr } = await chat(context, folder, "", "--url", "http://127.0.0.1:1", "--token-file", "gone");
  assert.equal(code, 1);
  assert.match(stderr, /gone: the token cannot be read \(ENOENT\)/);
});

function talkTo(context: TestContext, { address }: Gateway, more: Partial<Parameters<typeof openRemote>[0]> = {}) {
  const naming = { from: "header", name: "x-session-id" } as const;
  const partner = openRemote({ address, token, model: "echo", naming, env: {}, ...more });
  context.after(() => partner.close());
  return partner;
}

const open = { port: 0, auth_token: token };

test("Chat speaks to whichever endpoint is on, and keeps the session on both.", async (context) => {
  for (const endpoints of [{ compat_chat: true }, { compat_responses: true }]) {
    const gateway = await startGateway(context, { http: { ...open, endpoints } });
    const partner = talkTo(context, gateway);
    assert.deepEqual(await hear(partner, "Hello there"), { text: "Hello there", error: undefined });
    assert.deepEqual(await hear(partner, "Once more"), { text: "Once more", error: undefined });
    assert.equal((await about(gateway)).contextItems, 5);
  }
});

/** What the gateway finds for the next turn of the session. */
async function about({ gateway }: Gateway, hint = "header:x-session-id:terminal") {
  const reply = await gateway.answer(
    {
      model: "echo",
      items: [{ type: "message", role: "user", content: "?" }],
      itemsParam: "items",
      settings: { tools: [] },
      stream: false,
      keep: "no",
    },
    {
      turnId: "resp_probe",
      owner: "default",
      hint,
      signal: new AbortController().signal,
    },
  );
  await reply.events.return();
  return reply.about;
}

test("A session is named where the configuration looks for its name.", async (context) => {
  const hints = ["user", "header:X-Room"];
  assert.deepEqual(toNaming([{ from: "user" }, { from: "header", name: "x-session-id" }]), {
    from: "header",
    name: "x-session-id",
  });
  const gateway = await startGateway(context, {
    http: { ...open, endpoints: { compat_chat: true } },
    sessions: { hints },
  });
  for (const [naming, hint] of [
    [{ from: "user" }, "user:terminal"],
    [{ from: "header", name: "x-room" }, "header:x-room:terminal"],
  ] as const) {
    await hear(talkTo(context, gateway, { naming }), "Hello");
    assert.equal((await about(gateway, hint)).history, "continued");
    const folder = makeFolder(context);
    const { config } = await load(withHttp({}, { data_dir: join(folder, ".portico") }));
    const local = await openLocal({ config, model: "echo", naming });
    await hear(local, "Hello");
    await local.close();
    const later = await startGateway(context, {}, folder);
    assert.equal((await about(later, hint)).history, "continued");
  }
});

test("Over a unix socket too.", { skip: process.platform === "win32" && "there are none" }, async (context) => {
  const folder = makeFolder(context);
  const http = { ...open, bind: "unix:door.sock", endpoints: { compat_chat: true } };
  const gateway = await startGateway(context, { http }, folder);
  assert.match(gateway.address, /^unix:/);
  assert.deepEqual(await hear(talkTo(context, gateway), "Hello"), { text: "Hello", error: undefined });
});

test("What goes wrong is told in the gateway's own words.", async (context) => {
  const gateway = await startGateway(context, { http: { ...open, endpoints: { compat_chat: true } } });
  const failing = (content: string, more = {}) => hear(talkTo(context, gateway, more), content);
  await assert.rejects(
    failing("Hello", { token: "sk-wrong-0123456789" }),
    /^GatewayError: The token is not valid\. .*restart it, or .*--token-file/,
  );
  await assert.rejects(failing("FAIL before"), /^GatewayError: The echo adapter failed/);
  assert.match((await failing("FAIL after 1 one two")).error!, /The echo adapter failed/);
  await assert.rejects(
    failing("Hello", { address: "http://127.0.0.1:1" }),
    /^GatewayError: The gateway at 127\.0\.0\.1:1 refuses connections \(ECONNREFUSED\)\.$/,
  );
});

test("An answer that is stopped is called off in the gateway, and the session stays as it was.", async (context) => {
  const adapters = { echo: { type: "echo", delay_ms: 50 } };
  const gateway = await startGateway(context, { http: { ...open, endpoints: { compat_chat: true } }, adapters });
  const partner = talkTo(context, gateway);
  await hear(partner, "Hello");
  const stopped = new AbortController();
  const question = { messages: [{ role: "user", content: "REPEAT 1000 ha" }], session: "terminal" } as const;
  let text = "";
  for await (const batch of partner.ask(question, stopped.signal)) {
    for (const event of batch) if (event.type === "item-delta") text += event.text;
    if (text !== "") stopped.abort();
  }
  assert.match(text, /^ha/);
  // The next turn waits for the one that was called off, and would be late if that went on.
  assert.deepEqual(await hear(partner, "Well"), { text: "Well", error: undefined });
  assert.equal((await about(gateway)).contextItems, 5);
});
