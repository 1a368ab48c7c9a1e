/** What clients carry works where an archive was imported: in a running gateway, and in one that is started there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Gateway, makeFolder, startGateway, token } from "../gateway.ts";

const general = "sk-general-0123456789abcdef";
const settings = { auth: { token: general }, adapters: { echo: { type: "echo" } } };

async function call({ address }: Gateway, method: string, path: string, body?: object | string) {
  const isArchive = typeof body === "string";
  const response = await fetch(`${address}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${path.startsWith("/operator") ? general : token}`,
      ...(body !== undefined && { "content-type": isArchive ? "application/x-ndjson" : "application/json" }),
    },
    ...(body !== undefined && { body: isArchive ? body : JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}

async function read(gateway: Gateway, method: string, path: string, body?: object) {
  const { status, text } = await call(gateway, method, path, body);
  assert.equal(status, 200, text);
  return JSON.parse(text);
}

const thinking = { model: "m", store: false, reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"] };

/** A compacted conversation, and reasoning, as a client that keeps its own history has them. */
async function carry(gateway: Gateway) {
  const { id } = await read(gateway, "POST", "/v1/responses", { model: "m", input: "Why?", user: "alice" });
  const { output: short } = await read(gateway, "POST", "/v1/responses/compact", { model: "m", input: "Why blue?" });
  const { output: reasoned } = await read(gateway, "POST", "/v1/responses", { ...thinking, input: "Why red?" });
  const [{ encrypted_content }] = reasoned as [{ encrypted_content: string }];
  return { id, short, reasoning: { type: "reasoning", summary: [], encrypted_content } };
}

/** Reasoning that could not be opened would have no text in the item that shows it. */
async function checkCarried(gateway: Gateway, { id, short, reasoning }: Awaited<ReturnType<typeof carry>>) {
  const asked = { role: "user", content: "Go on." };
  await read(gateway, "POST", "/v1/responses", { model: "m", input: [...short, asked] });
  const { id: shown } = await read(gateway, "POST", "/v1/responses", { model: "m", input: [reasoning, asked] });
  const { data } = await read(gateway, "GET", `/v1/responses/${shown}/input_items?order=asc`);
  assert.match(JSON.stringify(data[0].content), /thinking about: Why red/);
  assert.equal((await read(gateway, "GET", `/v1/responses/${id}`)).user, "alice");
}

test("what a client carries works in a gateway that imported another's archive, at once and after a restart", async (context) => {
  const [here, folder] = [await startGateway(context, settings), makeFolder(context)];
  const there = await startGateway(context, settings, folder);
  const [fromHere, fromThere] = [await carry(here), await carry(there)];
  // The hints of two stores have different keys, so only sessions without hints can be imported into a store in use.
  const { text } = await call(here, "GET", "/operator/export");
  const archive = text.replaceAll(/,"hint":"[^"]*"/g, "");
  const first = JSON.parse(archive.slice(0, archive.indexOf("\n")));
  assert.equal(first.sealKeys.length, 1);
  const before = await call(there, "POST", "/v1/responses", { model: "m", input: fromHere.short });
  assert.match(before.text, /has only an encrypted form/);
  assert.equal((await call(there, "POST", "/operator/import", archive)).status, 200);
  for (const carried of [fromHere, fromThere]) await checkCarried(there, carried);
  await there.close();
  const again = await startGateway(context, settings, folder);
  for (const carried of [fromHere, fromThere]) await checkCarried(again, carried);
});
