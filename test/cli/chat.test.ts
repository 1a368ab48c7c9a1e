/** `portico chat`, with and without a running gateway: the same sessions either way. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { toNaming } from "../../src/channel.ts";
import { openLocal } from "../../src/cli/chat/local.ts";
import type { ChatBackend } from "../../src/cli/chat/backend.ts";
import { openRemote } from "../../src/cli/chat/remote.ts";
import { run } from "../../src/cli/main.ts";
import type { Event } from "../../src/core/event.ts";
import { load, withHttp } from "../config/surroundings.ts";
import { findFreePort, type Gateway, makeFolder, startGateway, token } from "../gateway.ts";
import { answerEvents, answerJson, startUpstream } from "../upstream.ts";
import { type Ended, runProgram, toConfig, writeConfig } from "../whole/program.ts";
import { createTerminalIn, portico, runHere } from "./screen.ts";
import { whileClosed } from "./stranger.ts";

/** Runs `portico chat ARGS` with these lines on its standard input. */
function chat(folder: string, lines: string, ...args: readonly string[]): Promise<Ended> {
  return runHere(folder, ["chat", ...args], { input: lines });
}

/** The same at a terminal, where these keys are pressed. */
async function chatAt(folder: string, keys: string, env: Readonly<Record<string, string>> = {}) {
  const [input, output] = [new PassThrough(), Object.assign(new PassThrough(), { isTTY: true })];
  const exits: (() => void)[] = [];
  const complaints: string[] = [];
  input.write(keys);
  const terminal = {
    ...createTerminalIn(folder),
    env,
    input,
    output,
    isInteractive: true,
    complain: (line: string) => void complaints.push(line),
    onExit: (listener: () => void) => void exits.push(listener),
  };
  assert.equal(await run(["chat"], terminal), 0);
  for (const exit of exits) exit();
  return { written: await text(output.end()), complaints };
}

/** The same, in a process of its own. */
function chatApart(context: TestContext, folder: string, lines: string): Promise<Ended> {
  const program = runProgram(context, folder, "chat");
  program.child.stdin?.end(lines);
  return program.ended;
}

/** What a client with the configured token reads in the headers when it continues the session of this name. */
async function continueSession(
  { address }: Gateway,
  session: string,
  bearer = token,
  before: readonly object[] = [],
): Promise<string> {
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json", "x-session-id": session },
    body: JSON.stringify({ model: "echo", messages: [...before, { role: "user", content: "And I?" }] }),
  });
  await response.text();
  return `${response.headers.get("x-portico-history")}, ${response.headers.get("x-portico-context")}`;
}

/** The text of an answer, and its error. */
async function collect(backend: ChatBackend, content: string, signal = new AbortController().signal) {
  const events: Event[] = [];
  const question = { messages: [{ role: "user", content }], session: "terminal", model: "echo" } as const;
  for await (const batch of (await backend.ask(question, signal)).events) events.push(...batch);
  const text = events.map((event) => (event.type === "item-delta" ? event.text : "")).join("");
  const end = events.at(-1);
  return { text, error: end?.type === "turn-end" ? end.answer.error?.message : "no end" };
}

test("With both endpoints disabled, chat answers in its own process, and continues the session the next time.", async (context) => {
  const folder = makeFolder(context);
  const off = { compat_chat: false, compat_responses: false };
  writeConfig(folder, toConfig({}, { endpoints: off }));
  const first = await chatApart(context, folder, "Hello there!\n");
  assert.deepEqual([first.code, first.stdout], [0, "Hello there!\n"]);
  assert.equal(first.stderr, "Session terminal, in this process, model echo. /new begins another, /exit quits.\n");
  const second = await chat(folder, "FAIL before\nAnd again\n");
  assert.deepEqual([second.code, second.stdout], [1, "And again\n"]);
  const gateway = await startGateway(context, {}, folder);
  assert.equal(await continueSession(gateway, "terminal"), "continued, 5 items");
});

test("A message on the command line is answered alone, with what is piped, and is never a command.", async (context) => {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig());
  const piped = await chat(folder, "def one():\n    return 1\n", "Explain");
  assert.deepEqual([piped.code, piped.stdout], [0, "Explain\n\ndef one():\n    return 1\n"]);
  assert.equal(piped.stderr, "Session terminal, in this process, model echo.\n");
  const alone = await chat(folder, "", "/exit");
  assert.deepEqual([alone.code, alone.stdout], [0, "/exit\n"]);
  const failed = await chat(folder, "", "FAIL before");
  assert.deepEqual([failed.code, failed.stdout], [1, ""]);
  const empty = await chat(folder, "\n", " ");
  assert.deepEqual([empty.code, empty.stderr], [2, "The message is empty.\n"]);
});

test("More piped input than a gateway takes is not read to its end.", async (context) => {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig({}, { limits: { max_body_bytes: 1_024 } }));
  assert.equal((await chat(folder, "a".repeat(1_024), "Explain")).code, 0);
  const { code, stderr } = await chat(folder, "a".repeat(1_025), "Explain");
  assert.equal(code, 1);
  assert.match(stderr, /^Standard input has more than 1024 bytes, the most that a request may have/);
});

test("A terminal marks what is pasted until the process ends; a simple one is not asked to.", async (context) => {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig());
  assert.match((await chatAt(folder, "/exit\r")).written, /^\x1b\[\?2004h.*\/exit\r\n\x1b\[\?2004l$/s);
  assert.doesNotMatch((await chatAt(folder, "/exit\r", { TERM: "dumb" })).written, /2004/);
});

test("At a terminal, a session that is continued shows what was said last, shortened.", async (context) => {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig());
  const [header, ...none] = (await chatAt(folder, "/exit\r")).complaints;
  assert.match(header!, /^Session terminal, in this process/);
  assert.deepEqual(none, []);
  await chat(folder, `  ${"so ".repeat(19)}so😀 long\n`);
  await chat(folder, "Hello\n", "--session", "other");
  const shown = `${"so ".repeat(19)}so…`;
  assert.deepEqual((await chatAt(folder, "/exit\r")).complaints, [
    header,
    `It continues after "${shown}", answered "${shown}".`,
  ]);
});

test("With a gateway at the configured address, chat uses it, and any client can continue the session.", async (context) => {
  const folder = makeFolder(context);
  const http = { port: await findFreePort(), auth_token: token, endpoints: { compat_chat: true } };
  writeConfig(folder, JSON.stringify({ gateway: { http } }));
  const gateway = await startGateway(context, { http }, folder);
  const { code, stdout, stderr } = await chat(folder, "Hello there!\n", "--session", "garden", "--model", "rose");
  assert.deepEqual([code, stdout], [0, "Hello there!\n"]);
  assert.equal(stderr, `Session garden, at ${gateway.address}, model rose. /new begins another, /exit quits.\n`);
  assert.equal(await continueSession(gateway, "garden"), "continued, 3 items");
});

test("A server that has the gateway's port but not its store gets no token, and chat answers in its own process.", async (context) => {
  const squatter = await startUpstream((_, response) => {
    response.setHeader("x-request-id", "req_1").end('{"status":"ok"}');
  });
  context.after(() => squatter.close());
  const folder = makeFolder(context);
  const http = { port: squatter.port, auth_token: token, endpoints: { compat_chat: true } };
  writeConfig(folder, JSON.stringify({ gateway: { http, adapters: { echo: { type: "echo" } } } }));
  const { code, stdout, stderr } = await chat(folder, "My own words\n");
  assert.deepEqual([code, stdout], [0, "My own words\n"]);
  assert.match(
    stderr,
    /^Whoever answers at http:\/\/127\.0\.0\.1:\d+ does not have this store open, .*gets no token\. .*--url\.\nSession terminal, in this process/,
  );
  assert.deepEqual(
    squatter.received.map(({ path, headers, text }) => [path, headers.authorization, text]),
    [["/healthz", undefined, ""]],
  );
  // A server that the user names with --url is trusted.
  await chat(folder, "Hello\n", "--model", "m", "--url", squatter.url);
  assert.equal(squatter.received.at(-1)?.headers.authorization, `Bearer ${token}`);
});

test(
  "If the user may not read the store's lock, the server gets no token, and chat does not touch the store.",
  { skip: process.platform === "win32" && "Windows has no such file modes" },
  async (context) => {
    const squatter = await startUpstream((_, response) => {
      response.setHeader("x-request-id", "req_1").end('{"status":"ok"}');
    });
    context.after(() => squatter.close());
    const folder = makeFolder(context);
    const http = { port: squatter.port, auth_token: token, endpoints: { compat_chat: true } };
    writeConfig(folder, JSON.stringify({ gateway: { http, adapters: { echo: { type: "echo" } } } }));
    chmodSync(folder, 0o755);
    chmodSync(join(folder, "portico.json"), 0o644);
    mkdirSync(join(folder, ".portico"));
    const { code, complained } = await whileClosed(join(folder, ".portico"), () => portico(folder, "chat"));
    assert.equal(code, 1);
    assert.equal(
      complained.split("\n").at(-1),
      `This user may not read the store's lock, so whoever answers at http://127.0.0.1:${squatter.port} ` +
        "may not be this store's gateway and gets no token. If you trust it, talk to it with --url.",
    );
    assert.deepEqual(
      squatter.received.map(({ path, headers }) => [path, headers.authorization]),
      [["/healthz", undefined]],
    );
    assert.deepEqual(readdirSync(join(folder, ".portico")), []);
  },
);

test("A store that another gateway holds is reported, with the option to talk to that gateway.", async (context) => {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig());
  const gateway = await startGateway(context, {}, folder);
  const taken = await chat(folder, "Hello\n");
  assert.deepEqual([taken.code, taken.stdout], [1, ""]);
  assert.match(taken.stderr, /^The session store .* is in use by another gateway\..* --url\.\n$/);
  const { code, stdout } = await chat(folder, "Hello\n", "--url", `${gateway.address}/v1`);
  assert.deepEqual([code, stdout], [0, "Hello\n"]);
});

test("If only digests are configured, chat needs a file with the token, and uses the sessions of its owner.", async (context) => {
  const folder = makeFolder(context);
  const http = {
    port: await findFreePort(),
    tokens: [{ name: "notes", token: "sk-notes-0123456789abcdef" }],
    endpoints: { compat_chat: true },
  };
  writeConfig(folder, JSON.stringify({ gateway: { http } }));
  const gateway = await startGateway(context, { http }, folder);
  const without = await chat(folder, "Hello\n");
  assert.equal(without.code, 1);
  assert.match(without.stderr, /--token-file/);
  writeFileSync(join(folder, "mine"), "sk-notes-0123456789abcdef\n");
  const { code, stdout } = await chat(folder, "Hello\n", "--token-file", "mine");
  assert.deepEqual([code, stdout], [0, "Hello\n"]);
  assert.equal(await continueSession(gateway, "terminal", "sk-notes-0123456789abcdef"), "continued, 3 items");
});

test("A token whose callers resend their history is sent the whole conversation.", async (context) => {
  const folder = makeFolder(context);
  const app = "sk-notes-0123456789abcdef";
  const http = {
    port: await findFreePort(),
    tokens: [{ name: "notes", token: app, history: "resent" }],
    endpoints: { compat_chat: true },
  };
  writeConfig(folder, JSON.stringify({ gateway: { http } }));
  const gateway = await startGateway(context, { http }, folder);
  writeFileSync(join(folder, "mine"), app);
  assert.equal((await chat(folder, "Hello\nAgain\n", "--token-file", "mine")).code, 0);
  const before = ["Hello", "Again"].flatMap((content) => [
    { role: "user", content },
    { role: "assistant", content },
  ]);
  assert.equal(await continueSession(gateway, "terminal", app, before), "matched, 5 items");
});

test("In a session whose other clients resend their history, the conversation continues, and says how.", async (context) => {
  const toExchange = (content: string) => [
    { role: "user", content },
    { role: "assistant", content },
  ];
  for (const isLocal of [false, true]) {
    const folder = makeFolder(context);
    const http = { port: await findFreePort(), auth_token: token, endpoints: { compat_chat: true } };
    writeConfig(folder, JSON.stringify({ gateway: { http } }));
    const gateway = await startGateway(context, { http }, folder);
    await continueSession(gateway, "terminal", token, toExchange("Hi"));
    if (isLocal) await gateway.close();
    const [, earlier] = (await chatAt(folder, "/exit\r")).complaints;
    assert.equal(earlier, 'It begins anew, as its clients resend their history. Last was "And I?", answered "And I?".');
    const { code, stdout, stderr } = await chat(folder, "one\ntwo\nthree\n");
    assert.deepEqual([code, stdout], [0, "one\ntwo\nthree\n"]);
    assert.match(stderr, /\/exit quits\.\n\[the gateway does not continue this by itself: .* is sent along\]\n$/);
    const later = isLocal ? await startGateway(context, {}, folder) : gateway;
    const before = ["one", "two", "three"].flatMap(toExchange);
    assert.equal(await continueSession(later, "terminal", token, before), "matched, 7 items");
  }
});

test(
  "A signal stops the answer and the process.",
  { skip: process.platform === "win32" && "Windows has no such signal" },
  async (context) => {
    const folder = makeFolder(context);
    writeConfig(folder, toConfig({ adapters: { echo: { type: "echo", delay_ms: 400 } } }));
    const program = runProgram(context, folder, "chat");
    program.child.stdin?.write("one two three four five six seven eight nine ten\n");
    await program.said("one");
    assert.equal((await program.stop("SIGINT")).code, 130);
    const once = runProgram(context, folder, "chat", "one two three four five six seven eight nine ten");
    once.child.stdin?.end();
    await once.said("one");
    assert.equal((await once.stop("SIGINT")).code, 130);
  },
);

test("An invalid URL, session or token file is refused.", async (context) => {
  const folder = makeFolder(context);
  assert.equal((await chat(folder, "", "--url", "example")).code, 2);
  assert.equal((await chat(folder, "", "--session", "a\nb")).code, 2);
  const { code, stderr } = await chat(folder, "", "--url", "http://127.0.0.1:1", "--token-file", "gone");
  assert.equal(code, 1);
  assert.equal(stderr, `${join(folder, "gone")}: the token cannot be read (ENOENT); name another file.\n`);
  writeFileSync(join(folder, "two"), "sk-one\nsk-two\n");
  const two = await chat(folder, "", "--url", "http://127.0.0.1:1", "--token-file", "two");
  assert.equal(two.code, 1);
  assert.match(two.stderr, /two contains no token: a token is one line/);
});

function connectTo(context: TestContext, { address }: Gateway, more: Partial<Parameters<typeof openRemote>[0]> = {}) {
  const naming = { type: "header", name: "x-session-id" } as const;
  const backend = openRemote({ address, token, naming, env: {}, ...more });
  context.after(() => backend.close());
  return backend;
}

const open = { port: 0, auth_token: token };

test("Chat uses whichever endpoint is enabled, and continues the session on both.", async (context) => {
  for (const endpoints of [{ compat_chat: true }, { compat_responses: true }]) {
    const gateway = await startGateway(context, { http: { ...open, endpoints } });
    const backend = connectTo(context, gateway);
    assert.deepEqual(await collect(backend, "Hello there"), { text: "Hello there", error: undefined });
    assert.deepEqual(await collect(backend, "Once more"), { text: "Once more", error: undefined });
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

test("A session is named by the hint that the configuration uses.", async (context) => {
  const hints = ["user", "header:X-Room"];
  assert.deepEqual(toNaming([{ type: "user" }, { type: "header", name: "x-session-id" }]), {
    type: "header",
    name: "x-session-id",
  });
  const gateway = await startGateway(context, {
    http: { ...open, endpoints: { compat_chat: true } },
    sessions: { hints },
  });
  for (const [naming, hint] of [
    [{ type: "user" }, "user:terminal"],
    [{ type: "header", name: "x-room" }, "header:x-room:terminal"],
  ] as const) {
    await collect(connectTo(context, gateway, { naming }), "Hello");
    assert.equal((await about(gateway, hint)).history, "continued");
    const folder = makeFolder(context);
    const { config } = await load(withHttp({}, { data_dir: join(folder, ".portico") }));
    const local = await openLocal(config, naming);
    await collect(local, "Hello");
    await local.close();
    const later = await startGateway(context, {}, folder);
    assert.equal((await about(later, hint)).history, "continued");
  }
});

test(
  "Chat works over a unix socket, which is open to its user only.",
  { skip: process.platform === "win32" && "not supported on Windows" },
  async (context) => {
    const folder = makeFolder(context);
    const http = { ...open, bind: "unix:door.sock", endpoints: { compat_chat: true } };
    // Even if the umask would allow more to others.
    const umask = process.umask(0);
    context.after(() => process.umask(umask));
    const gateway = await startGateway(context, { http }, folder);
    assert.match(gateway.address, /^unix:/);
    assert.equal(statSync(gateway.address.slice("unix:".length)).mode & 0o777, 0o600);
    assert.deepEqual(await collect(connectTo(context, gateway), "Hello"), { text: "Hello", error: undefined });
  },
);

test("Failures are reported in the gateway's own words.", async (context) => {
  const gateway = await startGateway(context, { http: { ...open, endpoints: { compat_chat: true } } });
  const failing = (content: string, more = {}) => collect(connectTo(context, gateway, more), content);
  await assert.rejects(
    failing("Hello", { token: "sk-wrong-0123456789" }),
    /^GatewayError: The token is not valid\. .*restart it, or .*--token-file/,
  );
  await assert.rejects(failing("FAIL before"), /^GatewayError: The echo adapter failed/);
  assert.match((await failing("FAIL after 1 one two")).error!, /The echo adapter failed/);
  await assert.rejects(
    failing("Hello", { address: "http://127.0.0.1:1" }),
    /^GatewayError: The gateway at 127\.0\.0\.1:1 refuses connections \(ECONNREFUSED\)\. Check that it is running, and its URL\.$/,
  );
});

test("Whoever does not answer like a gateway is reported with the URL to check.", async (context) => {
  let answer: readonly [status: number, body: string] = [200, ""];
  const server = createServer((_request, response) => response.writeHead(answer[0]).end(answer[1]));
  context.after(() => server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const backend = openRemote({ address, token, naming: undefined, env: {} });
  context.after(() => backend.close());
  const isReported = (thrown: Error) =>
    thrown.message === `${address} answered with status ${answer[0]}, but not like a gateway. Check the URL.`;
  for (answer of [
    [200, "<p>Welcome</p>"],
    [200, "{}"],
    [404, "<p>Not found</p>"],
    [404, '{"error":"not found"}'],
  ] as const) {
    await assert.rejects(backend.models(), isReported);
    if (answer[0] !== 200) await assert.rejects(collect(backend, "Hello"), isReported);
  }
});

test("Errors that the gateway relays from its upstream are not attributed to the gateway.", async (context) => {
  const model = await startUpstream(answerJson({ error: { message: "no such key" } }, 401));
  context.after(() => model.close());
  const adapters = { main: { type: "openai", base_url: model.url, api_key: "sk-upstream-0123456789" } };
  const gateway = await startGateway(context, { http: { ...open, endpoints: { compat_chat: true } }, adapters });
  const relayed = /The upstream refused the gateway's credentials \(status 401\)/;
  await assert.rejects(collect(connectTo(context, gateway), "Hello"), relayed);
  // During an answer too.
  model.script = answerEvents({ choices: [{ delta: { content: "Well" } }] }, { error: { message: "no more" } });
  assert.deepEqual(await collect(connectTo(context, gateway), "Hello"), {
    text: "Well",
    error: "The upstream failed: no more",
  });
});

test("A lost connection is reported as the gateway's.", async (context) => {
  const gateway = await startUpstream((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end('data: {"choices":[{"delta":{"content":"Well"}}]}\n\n');
  });
  context.after(() => gateway.close());
  const naming = { type: "user" } as const;
  const backend = openRemote({ address: gateway.url, token, naming, env: {} });
  context.after(() => backend.close());
  assert.deepEqual(await collect(backend, "Hello"), {
    text: "Well",
    error: "Connection lost: the gateway's stream broke off before the end of its answer.",
  });
});

/** A model server that has only the models that it lists. */
async function startServer(context: TestContext, ...names: readonly string[]) {
  const server = await startUpstream((received, response) => {
    const { model } = (received.json ?? {}) as { readonly model?: string };
    if (received.method === "GET") return answerJson({ data: names.map((id) => ({ id })) })(received, response);
    if (model === undefined || !names.includes(model)) {
      return answerJson({ error: { message: `no model ${model}` } }, 404)(received, response);
    }
    const choices = [{ delta: { content: `I am ${model}` }, finish_reason: "stop" }];
    return answerEvents({ choices })(received, response);
  });
  context.after(() => server.close());
  return server;
}

test("Without a configured model, chat uses the first listed model that seems to be a chat model.", async (context) => {
  const server = await startServer(context, "text-embedding-3-small", "whisper-1", "gpt-4o", "gpt-4o-mini");
  const folder = makeFolder(context);
  writeConfig(folder, toConfig({ adapters: { main: { type: "openai", base_url: server.url } } }));
  const { code, stdout, stderr } = await chat(folder, "Who are you?\n");
  assert.deepEqual([code, stdout], [0, "I am gpt-4o\n"]);
  assert.match(stderr, /in this process, model gpt-4o\./);
});

test("A gateway given by URL is asked for a model that it has.", async (context) => {
  const server = await startServer(context, "gpt-4o", "gpt-4o-mini");
  const adapters = { main: { type: "openai", base_url: server.url } };
  const gateway = await startGateway(context, { adapters });
  const folder = makeFolder(context);
  writeFileSync(join(folder, "mine"), token);
  const args = ["--url", gateway.address, "--token-file", "mine"];
  assert.equal((await chat(folder, "Who are you?\n", ...args)).stdout, "I am gpt-4o\n");
  writeConfig(folder, toConfig({ adapters: { main: { type: "echo", model: "gpt-4o-mini" } } }));
  assert.equal((await chat(folder, "Who are you?\n", ...args)).stdout, "I am gpt-4o-mini\n");
  writeFileSync(join(folder, "mine"), "sk-wrong-0123456789");
  const refused = await chat(folder, "Who are you?\n", ...args);
  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /^The token is not valid\. .*--token-file\)\.\n$/);
});

test("If no models are listed, chat says that a model must be named.", async (context) => {
  const server = await startServer(context);
  const folder = makeFolder(context);
  writeConfig(folder, toConfig({ adapters: { main: { type: "openai", base_url: server.url } } }));
  const empty = await chat(folder, "Hello\n");
  assert.deepEqual([empty.code, empty.stdout], [1, ""]);
  assert.equal(empty.stderr, "No model is named, and the list of models is empty. Name one with --model.\n");
  server.script = answerJson({ error: { message: "no such page" } }, 404);
  const absent = await chat(folder, "Hello\n");
  assert.deepEqual([absent.code, absent.stdout], [1, ""]);
  assert.match(absent.stderr, /^No model is named, .*no such page.* Name one with --model\.\n$/);
});

test("A failure that naming a model would not solve does not ask for one.", async (context) => {
  const folder = makeFolder(context);
  writeFileSync(join(folder, "mine"), token);
  const busy = await startUpstream(answerJson({ error: { message: "Too many requests. Wait 3 s.", code: "x" } }, 429));
  context.after(() => busy.close());
  const ask = async (address: string) => {
    const { code, stderr } = await chat(folder, "Hello\n", "--url", address, "--token-file", "mine");
    assert.equal(code, 1);
    return stderr;
  };
  assert.equal(
    await ask("http://127.0.0.1:1"),
    "The gateway at 127.0.0.1:1 refuses connections (ECONNREFUSED). Check that it is running, and its URL.\n",
  );
  assert.equal(await ask(busy.url), "Too many requests. Wait 3 s.\n");
  writeConfig(folder, toConfig({ adapters: { main: { type: "openai", base_url: "http://127.0.0.1:1" } } }));
  const local = await chat(folder, "Hello\n");
  assert.equal(local.stderr, "The upstream at 127.0.0.1:1 refuses connections (ECONNREFUSED).\n");
});

test("An adapter that lists no models is asked by its own name.", async (context) => {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig({ adapters: { agent: { type: "command", argv: ["cat"], input: "text" } } }));
  const { code, stdout, stderr } = await chat(folder, "Hello\n");
  assert.deepEqual([code, stdout], [0, "Hello\n"]);
  assert.match(stderr, /, model agent\./);
});

test("An answer that is stopped is cancelled in the gateway, and the session is unchanged.", async (context) => {
  const adapters = { echo: { type: "echo", delay_ms: 50 } };
  const gateway = await startGateway(context, { http: { ...open, endpoints: { compat_chat: true } }, adapters });
  const backend = connectTo(context, gateway);
  await collect(backend, "Hello");
  const stopped = new AbortController();
  const question = {
    messages: [{ role: "user", content: "REPEAT 1000 ha" }],
    session: "terminal",
    model: "echo",
  } as const;
  let text = "";
  for await (const batch of (await backend.ask(question, stopped.signal)).events) {
    for (const event of batch) if (event.type === "item-delta") text += event.text;
    if (text !== "") stopped.abort();
  }
  assert.match(text, /^ha/);
  // The next turn waits for the cancelled one, and would be late if that continued.
  assert.deepEqual(await collect(backend, "Well"), { text: "Well", error: undefined });
  assert.equal((await about(gateway)).contextItems, 5);
});
