/** The connection to PostgreSQL breaks just when a COMMIT has happened: what is told is what happened. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { test, type TestContext } from "node:test";
import { call, tellWell } from "../harness/client.ts";
import { endAfter, openGateway } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { newDatabase } from "../harness/postgres.ts";

const { skip } = need("postgres");

/** A road to the database on which the answer to the next COMMIT that stands alone gets lost, with its connection. */
async function makeRoad(context: TestContext, store: string) {
  const { hostname, port } = new URL(store);
  const road = { address: "", losesNext: false, lost: 0 };
  const server = createServer((client) => {
    const database = connect(Number(port || 5432), hostname);
    let isLosing = false;
    client.on("close", () => database.destroy()).on("error", () => database.destroy());
    database.on("close", () => client.destroy()).on("error", () => client.destroy());
    client.on("data", (chunk) => {
      if (road.losesNext && chunk.includes("COMMIT") && !chunk.includes("BEGIN")) {
        road.losesNext = false;
        isLosing = true;
      }
      database.write(chunk);
    });
    database.on("data", (chunk) => {
      if (!isLosing) return void client.write(chunk);
      road.lost += 1;
      client.destroy();
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  endAfter(context, () => server.close());
  const address = new URL(store);
  address.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  road.address = address.href;
  return road;
}

test("after a COMMIT whose answer was lost, callers are told what happened", { skip }, async (context) => {
  const road = await makeRoad(context, await newDatabase(context));
  const { address } = await openGateway(context, { gateway: { sessions: { store: road.address } } });
  const answer = await tellWell(address, { on: "responses", say: "hi" });

  async function lose(method: string, path: string, body?: object) {
    const { lost } = road;
    road.losesNext = true;
    const answered = await call(address, method, path, body);
    assert.equal(road.lost, lost + 1, `${method} ${path}: an answer was lost`);
    assert.equal(answered.status, 200, answered.raw);
    return answered.body;
  }

  const { id } = await lose("POST", "/v1/conversations", { items: [{ role: "user", content: "first" }] });
  await lose("POST", `/v1/conversations/${id}/items`, { items: [{ role: "user", content: "second" }] });
  const { data } = (await call(address, "GET", `/v1/conversations/${id}/items?order=asc`)).body;
  assert.deepEqual(
    data.map((item: { readonly content: readonly { readonly text: string }[] }) => item.content[0]?.text),
    ["first", "second"],
  );
  await lose("POST", `/v1/conversations/${id}`, { metadata: { topic: "beds" } });
  await lose("DELETE", `/v1/conversations/${id}/items/${data[0].id}`);
  await lose("DELETE", `/v1/conversations/${id}`);
  await lose("DELETE", `/v1/responses/${answer.id}`);
  assert.equal((await call(address, "GET", `/v1/conversations/${id}`)).status, 404);
  assert.equal((await call(address, "GET", `/v1/responses/${answer.id}`)).status, 404);
});
