/** What the tests of this folder share: one request told in a line, and servers that live as long as their file. */
import assert from "node:assert/strict";
import { after } from "node:test";
import { type Answered, call, startServer, type Server, type Wish } from "../harness/client.ts";
import { openGateway, type Options, repeatLast, type Script, seenBy, shareGateway } from "../harness/house.ts";

type Caller = Pick<Wish, "token" | "headers">;
type Fields = Readonly<Record<string, unknown>>;

export const strangersToken = "sk-stranger-0123456789abcdef";
/** A second owner. */
export const stranger = { tokens: [{ name: "stranger", token: strangersToken }] };

/** A response that must come, whole. */
export async function ask(
  address: string,
  input: unknown,
  more: Fields = {},
  caller: Caller = {},
): Promise<Answered["body"]> {
  return fetchBody(address, "POST", "/v1/responses", { model: "m", input, ...more }, caller);
}

/** What any other request answers, which must succeed. */
export async function fetchBody(
  address: string,
  method: string,
  path: string,
  body?: unknown,
  caller: Caller = {},
): Promise<Answered["body"]> {
  const answered = await call(address, method, path, body, caller);
  assert.equal(answered.status, 200, answered.raw);
  return answered.body;
}

/** The status, code and parameter of a request that must be refused in the one shape of errors. */
export async function refuse(
  address: string,
  method: string,
  path: string,
  body?: unknown,
  caller: Caller = {},
): Promise<readonly unknown[]> {
  const { status, body: answered, raw } = await call(address, method, path, body, caller);
  assert.ok(status >= 400, raw);
  assert.deepEqual(Object.keys(answered.error).toSorted(), ["code", "message", "param", "type"]);
  assert.equal(answered.error.type, "invalid_request_error", raw);
  return [status, answered.error.code, answered.error.param];
}

/** The words of items as a list has them, oldest first. */
export function toTexts(items: readonly Answered["body"][]): readonly string[] {
  return items.map((item) => {
    const said = item.content?.map((part: Answered["body"]) => part.text ?? part.type).join("");
    return said ?? `${item.type}${item.call_id === undefined ? "" : ` ${item.call_id}`}`;
  });
}

/** What a conversation holds, oldest first. */
export async function listTexts(address: string, conversation: string): Promise<readonly string[]> {
  const { data } = await fetchBody(address, "GET", `/v1/conversations/${conversation}/items?order=asc&limit=100`);
  return toTexts(data);
}

/** A gateway for all tests of a file: each opens it with what its model is to say, and asks what that saw last. */
export function shareTalk(options: Options = {}) {
  const open = shareGateway(options);
  return async (script: Script = repeatLast) => {
    const { address, model } = await open();
    model.script = script;
    return { address, model, seen: () => seenBy(model.turns.at(-1)) };
  };
}

export interface Served {
  readonly address: string;
  readonly server: Server;
}

/** A gateway in front of a real chat server, for all tests of a file, and further adapters for it by their names. */
export function shareServed(
  adapter: Fields = {},
  toMore: (url: string) => Readonly<Record<string, Fields>> = () => ({}),
): () => Promise<Served> {
  const ends: (() => unknown)[] = [];
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  const scope = { after: (end: () => unknown) => void ends.push(end) };
  let opened: Promise<Served> | undefined;
  async function open(): Promise<Served> {
    const server = await startServer(scope, adapter);
    const { model } = server.adapters;
    const more = Object.entries(toMore(server.url));
    const { address } = await openGateway(scope, {
      gateway: {
        adapters: { model, ...Object.fromEntries(more.map(([name, keys]) => [name, { ...model, ...keys }])) },
        default_adapter: "model",
        models: Object.fromEntries(more.map(([name]) => [name, name])),
      },
    });
    return { address, server };
  }
  return () => (opened ??= open());
}
