/**
 * Every way in which an upstream can fail, at every stage: what the caller reads, how soon, and that nothing of it is
 * stored.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { test, type TestContext } from "node:test";
import { findFreePort, startGateway } from "../gateway.ts";
import { unknownHost } from "../upstream.ts";
import { type Endpoint, endpoints, paths, readAnswer, tellWell, toRequest } from "../whole/talk.ts";
import { type Asked, type Fault, type Wire, all, beginning, goodHead, head, startFaulty } from "./faults.ts";

const apiKey = "sk-upstream-secret-0123";
const secrets = /upstream-secret|topsecret/;
/** The text of an upstream's error, with secrets that nobody may read. */
const said = `Said by the upstream at https://models.test/v1?key=topsecret1&api_key=topsecret2 of ${apiKey}.`;

/** A status and a code; 200 with a code: an error within the stream; 200 alone: answered. */
type Outcome = readonly [status: number, code?: string];

interface Row {
  /** An upstream that … */
  readonly does: string;
  /** Which set of limits applies; by default the generous ones. */
  readonly lane?: Lane;
  readonly fault?: Fault;
  readonly whole: Outcome;
  readonly stream: Outcome;
}

type Lane = keyof typeof lanes;

const patient = { first_byte_timeout_ms: 20_000, idle_timeout_ms: 20_000, total_timeout_ms: 20_000 };
const lateMs = 250;
const lanes = {
  patient,
  first: { ...patient, first_byte_timeout_ms: lateMs, total_timeout_ms: 2 * lateMs },
  idle: { ...patient, idle_timeout_ms: lateMs, total_timeout_ms: 2 * lateMs },
  total: { ...patient, total_timeout_ms: 2 * lateMs },
  small: { ...patient, max_response_bytes: 64 * 1024, max_answer_characters: 64 * 1024 },
  refused: patient,
  unresolved: { ...patient, base_url: `http://${unknownHost}/v1` },
  mute: { ...patient, connect_timeout_ms: lateMs },
};

/** More than the small lane takes. */
const tooMuch = "x".repeat(100 * 1024);

const rows: readonly Row[] = [
  { does: "refuses the connection", lane: "refused", ...both(502, "adapter_error") },
  { does: "has a name that no one knows", lane: "unresolved", ...both(502, "adapter_error") },
  { does: "hangs while the connection is made", lane: "mute", ...both(504, "adapter_connect_timeout") },
  { does: "resets before the head", fault: reset(() => ""), ...both(502, "adapter_error") },
  { does: "resets after the head", fault: reset(openHead), ...both(502, "adapter_error") },
  {
    does: "resets in the middle",
    fault: reset(openHalf),
    whole: [502, "adapter_error"],
    stream: [200, "adapter_error"],
  },
  {
    does: "hangs before the head",
    lane: "first",
    fault: hang(() => ""),
    whole: [504, "adapter_total_timeout"],
    stream: [504, "adapter_first_byte_timeout"],
  },
  {
    does: "hangs after the head",
    lane: "first",
    fault: hang(goodHead),
    whole: [504, "adapter_total_timeout"],
    stream: [504, "adapter_first_byte_timeout"],
  },
  {
    does: "hangs in the middle",
    lane: "idle",
    fault: hang(half),
    whole: [504, "adapter_total_timeout"],
    stream: [200, "adapter_idle_timeout"],
  },
  { does: "says 400", fault: say(400), ...both(400, "upstream_code") },
  { does: "says 401", fault: say(401), ...both(502, "adapter_refused") },
  { does: "says 403", fault: say(403), ...both(502, "adapter_refused") },
  { does: "says 404", fault: say(404), ...both(404, "upstream_code") },
  { does: "says 408", fault: say(408), ...both(504, "upstream_code") },
  { does: "says 409", fault: say(409), ...both(502, "upstream_code") },
  { does: "says 429", fault: say(429), ...both(429, "upstream_code") },
  { does: "says 500", fault: say(500), ...both(502, "upstream_code") },
  { does: "says 502", fault: say(502), ...both(502, "upstream_code") },
  { does: "says 503", fault: say(503), ...both(503, "upstream_code") },
  { does: "says 529", fault: say(529), ...both(503, "upstream_code") },
  { does: "says 429 and hangs", fault: unended(429), ...both(429, "adapter_rate_limit") },
  { does: "says 404 on a web page", fault: page(404), ...both(502, "adapter_protocol") },
  { does: "says 503 on a web page", fault: page(503), ...both(503, "overloaded") },
  { does: "answers with a web page", fault: page(200), ...both(502, "adapter_protocol") },
  {
    does: "answers with another type",
    fault: (asked) => void asked.socket.end(head("text/plain") + all(asked)),
    ...both(502, "adapter_protocol"),
  },
  {
    does: "redirects",
    fault: ({ socket }) => void socket.end(head("text/plain", 302, "location: http://127.0.0.1/?key=topsecret3\r\n")),
    ...both(502, "adapter_protocol"),
  },
  {
    does: "speaks no HTTP",
    fault: ({ socket }) => void socket.end("SSH-2.0-hello\r\n\r\n"),
    ...both(502, "adapter_protocol"),
  },
  {
    does: "answers with garbage",
    fault: continueWith(({ stream }) => (stream ? "data: {gar\n\n" : ",gar")),
    whole: [502, "adapter_protocol"],
    stream: [200, "adapter_protocol"],
  },
  {
    does: "tells an error instead of an answer",
    fault: (asked) => void asked.socket.end(goodHead(asked) + errorBody(asked)),
    ...both(429, "rate_limit_exceeded"),
  },
  {
    does: "ends too early",
    fault: continueWith(() => ""),
    whole: [502, "adapter_protocol"],
    stream: [200, "adapter_protocol"],
  },
  {
    does: "closes in the middle",
    fault: continueWith(() => "", openHalf),
    whole: [502, "adapter_error"],
    stream: [200, "adapter_error"],
  },
  {
    does: "cuts a character",
    fault: continueWith((asked) => cutCharacter(asked)),
    whole: [502, "adapter_protocol"],
    stream: [200, "adapter_protocol"],
  },
  {
    does: "says too much",
    lane: "small",
    fault: continueWith((asked) => (asked.stream ? beginning(asked, tooMuch) : tooMuch)),
    whole: [502, "adapter_answer_too_large"],
    stream: [200, "adapter_answer_too_large"],
  },
  { does: "drips", lane: "total", fault: drip, whole: [504, "adapter_total_timeout"], stream: [200] },
];

const matrices: readonly (readonly [Wire, readonly Endpoint[]])[] = [
  ["chat", endpoints],
  ["responses", ["responses"]],
];

for (const [wire, fronts] of matrices) {
  test(`faults of an upstream that speaks ${wire}`, { concurrency: 8, timeout: 60_000 }, async (context) => {
    const runtime = await startRuntime(context, wire);
    const cells = rows.flatMap((row) =>
      fronts.flatMap((on) => [false, true].map((stream) => ({ row, on, stream, ...runtime }))),
    );
    await Promise.all(cells.map((cell) => context.test(nameOf(cell), () => judge(cell))));
  });
}

interface Runtime {
  readonly address: string;
  readonly faulty: Awaited<ReturnType<typeof startFaulty>>;
  /** To be called when the caller of this text has read the beginning of its answer. */
  readonly noteReceived: (text: string) => void;
}

interface Cell extends Runtime {
  readonly row: Row;
  readonly on: Endpoint;
  readonly stream: boolean;
}

function nameOf({ row, on, stream }: Cell): string {
  const [status, code] = stream ? row.stream : row.whole;
  const how =
    code === undefined ? "answered" : status === 200 ? `reported within the stream: ${code}` : `${status} ${code}`;
  return `${on}, ${stream ? "streamed" : "whole"}: an upstream that ${row.does} is ${how}`;
}

async function judge(cell: Cell): Promise<void> {
  const { row, on, stream, address, faulty, noteReceived } = cell;
  const user = `${on} ${stream ? "streamed" : "whole"} ${row.does}`;
  const [status, code] = stream ? row.stream : row.whole;
  await tellWell(address, { on, say: `one ${user}`, more: { model: "well", user } });

  const text = `two ${user}`;
  const request = { on, stream, say: text, more: { model: row.does, user } };
  const askedAt = performance.now();
  const starvedMs = watchStarving();
  const response = await fetch(address + paths[on], toRequest(request));
  let raw = "";
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    raw += piece;
    noteReceived(text);
  }
  const knownAt = performance.now();
  const waitedMs = starvedMs();
  const received = readAnswer(request, response.status, response.headers, raw);
  assert.deepEqual([received.status, codeOf(received.error, raw)], [status, code], raw);
  if (code !== undefined) {
    const limitMs = { refused: 0, unresolved: 5_000, mute: lateMs }[String(row.lane)];
    const brokeAt = limitMs === undefined ? faulty.brokeAt(text) : askedAt + limitMs;
    const tookMs = knownAt - brokeAt - waitedMs;
    assert.ok(tookMs < 1000, `the caller knew ${tookMs} ms after the failure`);
  }
  assert.doesNotMatch(raw, secrets);
  assert.equal(response.headers.get("retry-after"), status === 429 || status === 503 ? "1" : null);

  await tellWell(address, { on, say: `three ${user}`, more: { model: "well", user } });
  const { shown } = faulty.asked.find((asked) => asked.shown.at(-1) === `user: three ${user}`)!;
  const kept = code === undefined ? [`user: two ${user}`, "assistant: well"] : [];
  assert.deepEqual(shown, [`user: one ${user}`, "assistant: well", ...kept, `user: three ${user}`]);
}

/** For how long this process was ready to run but was not scheduled: time that the machine took, not the gateway. */
function watchStarving(): () => number {
  const stepMs = 20;
  const { user, system } = process.cpuUsage();
  let lateMs = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    lateMs += Math.max(0, performance.now() - last - stepMs);
    last = performance.now();
  }, stepMs).unref();
  return () => {
    clearInterval(timer);
    const own = process.cpuUsage();
    return Math.max(0, lateMs - (own.user + own.system - user - system) / 1000);
  };
}

/** The code of the error itself; that of a failed response is one of the few that its wire defines. */
function codeOf(error: Readonly<Record<string, unknown>> | undefined, raw: string): unknown {
  const [, event] = /^event: error\ndata: (.*)$/m.exec(raw) ?? [];
  return event === undefined ? error?.["code"] : (JSON.parse(event) as { error: { code: string } }).error.code;
}

async function startRuntime(context: TestContext, wire: Wire): Promise<Runtime> {
  const receipts = new Map<string, PromiseWithResolvers<void>>();
  const receiptOf = (text: string): PromiseWithResolvers<void> => {
    const known = receipts.get(text) ?? Promise.withResolvers<void>();
    receipts.set(text, known);
    return known;
  };
  const faults = new Map(rows.map(({ does, fault }) => [does, fault]));
  const faulty = await startFaulty(
    (model) => faults.get(model),
    (text) => receiptOf(text).promise,
  );
  context.after(() => faulty[Symbol.asyncDispose]());
  const mute = await startMute(context);
  const urls: Readonly<Record<string, string>> = {
    refused: `http://127.0.0.1:${await findFreePort()}/v1`,
    mute: `https://127.0.0.1:${mute.port}/v1`,
  };
  const once = { retry: { times: 0 }, breaker: { failures: 0 } };
  const adapters = Object.entries(lanes).map(([name, limits]) => {
    const base_url = urls[name] ?? `http://127.0.0.1:${faulty.port}/v1`;
    return [name, { type: "openai", wire, base_url, api_key: apiKey, ...once, ...limits }];
  });
  const { address } = await startGateway(context, {
    adapters: Object.fromEntries(adapters),
    default_adapter: "patient",
    models: Object.fromEntries(rows.map(({ does, lane = "patient" }) => [does, lane])),
  });
  return { address, faulty, noteReceived: (text) => receiptOf(text).resolve() };
}

/** Accepts connections and never sends anything. */
async function startMute(context: TestContext): Promise<{ readonly port: number }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on("error", () => {}).resume()));
  await once(server.listen(0, "127.0.0.1"), "listening");
  context.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return { port: (server.address() as AddressInfo).port };
}

function both(...outcome: Outcome): Pick<Row, "whole" | "stream"> {
  return { whole: outcome, stream: outcome };
}

function half(asked: Asked): string {
  return goodHead(asked) + beginning(asked);
}

/** Only with a chunked body can the end be distinguished from a lost connection; any other body ends with the connection. */
function openHead(asked: Asked): string {
  return goodHead(asked).replace("connection: close", "transfer-encoding: chunked");
}

/** The beginning of a chunk that announces more. */
function openHalf(asked: Asked): string {
  return `${openHead(asked)}fff\r\n${beginning(asked)}`;
}

function reset(after: (asked: Asked) => string): Fault {
  return async (asked) => {
    const text = after(asked);
    if (text !== "") await new Promise((resolve) => asked.socket.write(text, resolve));
    if (text.length > openHead(asked).length) await asked.received;
    asked.socket.resetAndDestroy();
  };
}

function hang(after: (asked: Asked) => string): Fault {
  return (asked) => {
    asked.socket.write(after(asked));
    return asked.stream ? lateMs : 2 * lateMs;
  };
}

/** Begins well, and continues badly when the beginning was received. */
function continueWith(rest: (asked: Asked) => string | Buffer, begin: (asked: Asked) => string = half): Fault {
  return async (asked) => {
    asked.socket.write(begin(asked));
    await asked.received;
    asked.socket.end(rest(asked));
  };
}

function say(status: number): Fault {
  const error = { message: said, type: "x", code: "upstream_code", param: null };
  return ({ socket }) => void socket.end(head("application/json", status) + JSON.stringify({ error }));
}

function unended(status: number): Fault {
  return ({ socket }) => void socket.write(head("application/json", status, "content-length: 100\r\n"));
}

function page(status: number): Fault {
  return ({ socket }) => void socket.end(`${head("text/html", status)}<!doctype html><p>${said}</p>`);
}

function errorBody({ stream }: Asked): string {
  const error = JSON.stringify({ error: { message: said, code: "rate_limit_exceeded" } });
  return stream ? `data: ${error}\n\n` : error;
}

/** The rest of a good answer in which the first byte of a character stands alone. */
function cutCharacter(asked: Asked): Buffer {
  if (asked.stream) return Buffer.from(all(asked, "\xc3"), "latin1");
  const rest = all(asked).slice(-20);
  return Buffer.concat([Buffer.from(rest.slice(0, 1)), Buffer.of(0xc3), Buffer.from(rest.slice(1))]);
}

/** A few bytes at a time, each within the limits; a stream may take as long as it likes, a whole answer may not. */
function drip(asked: Asked): number {
  asked.socket.write(goodHead(asked));
  const answer = all(asked);
  const size = Math.ceil(answer.length / 10);
  let place = 0;
  const timer = setInterval(() => {
    asked.socket.write(asked.stream ? answer.slice(place, place + size) : " ");
    place += size;
    if (asked.stream && place >= answer.length) asked.socket.end();
  }, 60);
  asked.socket.on("close", () => clearInterval(timer)).on("finish", () => clearInterval(timer));
  return 2 * lateMs;
}
