/** What an archive's lines may contain where it ends up in headers and paths. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { readArchive } from "../src/archive/read.ts";
import { writeArchive } from "../src/archive/write.ts";
import type { ArchiveRecord } from "../src/core/store.ts";
import { fullTold, gather, makeTurn, replay } from "./stores/making.ts";

const hintKey = Buffer.alloc(32, 7).toString("base64url");
const at = "2026-02-03T04:05:06.789Z";
const session = {
  type: "session",
  id: "conv_1",
  owner: "alice",
  resends: false,
  metadata: {},
  createdAt: at,
  updatedAt: at,
};
const turn = { type: "turn", ...makeTurn({ session: "conv_1", told: { ...fullTold, session: "conv_1" } }) };

const first = { type: "portico", version: 1, hintKey };

function read(...lines: readonly object[]): Promise<ArchiveRecord[]> {
  const text = [...lines, { type: "end" }].map((line) => `${JSON.stringify(line)}\n`).join("");
  return gather(readArchive(toBytes(text)));
}

async function* toBytes(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

test("what no header could carry is refused, and the error names its line and field", async () => {
  for (const [place, line] of [
    ["id", { ...session, id: "conv_1\r\nset-cookie: a=b" }],
    ["id", { ...session, id: "conv_ü" }],
    ["id", { ...session, id: "c".repeat(256) }],
    ["tip", { ...session, tip: "resp 1" }],
    ["hint", { ...session, hint: "no hash\n" }],
    ["id", { ...turn, id: "resp_1\n" }],
    ["session", { ...turn, session: "conv_1\0" }],
    ["parent", { ...turn, parent: "resp_\u2028" }],
    ["digest", { ...turn, digest: "\r" }],
    ["told.session", { ...turn, told: { ...fullTold, session: "conv_1\r\nx: y" } }],
    ["told.history", { ...turn, told: { ...fullTold, history: "new\r\nx: y" } }],
    ["told.contextItems", { ...turn, told: { ...fullTold, contextItems: "1\r\nx: y" } }],
  ] as const) {
    await assert.rejects(read(first, line), { code: "invalid_value", message: new RegExp(`^Line 2 .*'${place}' `) });
  }
});

test("a session that no store could have is refused, and the error names its line and field", async () => {
  for (const [place, change] of [
    ["owner", { owner: "" }],
    ["hint", { hint: "h".repeat(256) }],
    ["hint", { hint: "h".repeat(41) }],
    ["hint", { hint: "h" }],
    ["resends", { resends: "yes" }],
    ["metadata.a", { metadata: { a: 1 } }],
    ["createdAt", { createdAt: "yesterday" }],
    ["updatedAt", { updatedAt: "2026-13-01T00:00:00Z" }],
  ] as const) {
    const message = new RegExp(`^Line 2 .*'${place}' `);
    await assert.rejects(read(first, { ...session, ...change }), { code: "invalid_value", message });
  }
});

test("a line that is no record, or comes after the end, is refused by its number, which counts blank lines too", async () => {
  const [start, end] = [first, { type: "end" }].map((line) => `${JSON.stringify(line)}\n`);
  for (const [lines, message] of [
    ...["null", "5", "[]", "{}", '{"type":5}'].map(
      (line) => [`\r\n ${line}`, /^Line 3 .*not an object with a 'type'/] as const,
    ),
    ['{"type":"constructor"}', /^Line 2 .*unknown type "constructor"/],
    [`${end}${JSON.stringify(session)}`, /^Line 3 .*comes after the end/],
    [JSON.stringify(first), /^Line 2 .*out of place/],
  ] as const) {
    await assert.rejects(gather(readArchive(toBytes(`${start}${lines}\n${end}`))), { message });
  }
});

test("an archive is the same in whatever pieces its bytes arrive", async () => {
  const text = [first, { ...session, owner: "älice" }, { type: "end" }].map((line) => JSON.stringify(line)).join("\n");
  const pieces = async function* () {
    for (const byte of Buffer.from(text)) yield Uint8Array.of(byte);
  };
  assert.deepEqual(await gather(readArchive(pieces())), await gather(readArchive(toBytes(text))));
});

test("a line that is too long is refused before its end", async () => {
  const piece = Buffer.alloc(1024 * 1024, " ");
  const endless = async function* () {
    for (;;) yield piece;
  };
  await assert.rejects(gather(readArchive(endless())), /^GatewayError: Line 1 .* is longer than 134217728 bytes/);
});

test("a compressed archive is refused, and the error says so", async () => {
  const compressed = async function* () {
    yield gzipSync(JSON.stringify(first));
  };
  await assert.rejects(
    gather(readArchive(compressed())),
    /^GatewayError: Line 1 .* is compressed, decompress it first/,
  );
});

test("the key of an archive is 32 bytes in base64url, and no other is accepted", async () => {
  for (const wrong of ["", "!!!!", "c2hvcnQ", `${hintKey}AAAA`]) {
    await assert.rejects(read({ ...first, hintKey: wrong }), /Line 1 .*'hintKey' /);
    await assert.rejects(read({ ...first, sealKeys: [hintKey, wrong] }), /Line 1 .*'sealKeys.1' /);
  }
});

test("the keys of seals are in the first line, and an older archive without them is read as well", async () => {
  const store: ArchiveRecord = { type: "store", hintKey, sealKeys: [hintKey] };
  assert.deepEqual(await read({ ...first, sealKeys: [hintKey] }), [store]);
  const written = await Array.fromAsync(writeArchive(replay([store])));
  assert.deepEqual(await gather(readArchive(toBytes(written.join("")))), [store]);
  assert.deepEqual(await read(first), [{ type: "store", hintKey, sealKeys: undefined }]);
});

test("ids of every age and of an operator's own making are accepted unchanged", async () => {
  for (const id of [
    "conv_0189ffee",
    `conv_${"a".repeat(48)}`,
    "9f1b2c3d-0000-4000-8000-000000000000",
    "team/bot:7@example",
  ]) {
    const [, taken] = await read(first, { ...session, id, tip: `resp_${id}_shown`, hint: hintKey });
    assert.deepEqual(taken?.type === "session" && taken.id, id);
  }
});
