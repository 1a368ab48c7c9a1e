/** The module adapter: which files it accepts and refuses, and what a module may have besides its stream. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { call, tell } from "../harness/client.ts";
import { makeFolder, openGateway } from "../harness/house.ts";
import { byName, listModels, share, whyNot } from "./scene.ts";

const say = `({ async *stream(turn) { yield [{ type: "text", text: turn.model + " " + JSON.stringify(options) }]; } })`;
const throwing = (what: string) => `export default { async *stream() { throw ${what}; } };`;

/** Files that are adapters, each under its own name. */
const files = {
  "typed.ts": `interface Options { a: number }\nexport default (options: Options) => ${say};`,
  "typed.mts": `export default (options: object) => ${say};`,
  "function.mjs": `export default function make(options) { return ${say}; }`,
  "object.mjs": `const options = { a: 1 };\nexport default ${say};`,
  "later.mjs": `const options = await { a: 1 };\nexport default async () => ${say};`,
  "beside.mts": `import { answer } from "./parts/word.ts";\nexport default (options) => answer(options);`,
};

const others = {
  "whole.mjs": `export default {
    size: 7, async *stream() { yield [{ type: "text", text: null ?? "hi", logprobs: null }]; },
    async countTokens() { return this.size; }, async models() { return ["one", "two"]; },
    async close() { globalThis.porticoTestClosed = (globalThis.porticoTestClosed ?? 0) + 1; },
  };`,
  "broken.mjs": throwing(`new TypeError("bad key sk-1")`),
  "strange.mjs": throwing(`"words"`),
};

const open = share(async (scope) => {
  const folder = makeFolder(scope);
  mkdirSync(join(folder, "parts"));
  writeFileSync(join(folder, "parts/word.ts"), `export const answer = (options: object) => ${say};`);
  const all = Object.entries({ ...files, ...others }).map(([path, text]) => {
    writeFileSync(join(folder, path), text);
    return [path, { type: "module", path, options: { a: 1 }, retries: 0 }] as const;
  });
  const adapters = Object.fromEntries(all);
  return openGateway(scope, { folder, gateway: { adapters, ...byName(Object.keys(adapters)) } });
});

for (const name of Object.keys(files)) {
  test(`${name} may export an adapter`, async () => {
    const { address } = await open();
    const heard = await tell(address, { on: "chat", say: "hi", more: { model: name } });
    assert.equal(heard.text, `${name} {"a":1}`, heard.raw);
  });
}

for (const name of ["broken.mjs", "strange.mjs"]) {
  test(`what ${name} throws goes to the log, and the caller learns only that the adapter failed`, async () => {
    const { address, logged } = await open();
    const { status, error, raw } = await tell(address, { on: "chat", say: "hi", more: { model: name } });
    assert.deepEqual([status, error?.["code"]], [502, "adapter_error"]);
    assert.doesNotMatch(raw, /sk-1|words/);
    assert.match(inspect(logged, { depth: Infinity }), name === "broken.mjs" ? /bad key sk-1/ : /'words'/);
  });
}

test("a module offers models, counts tokens and is closed with the gateway", async (context) => {
  const folder = makeFolder(context);
  writeFileSync(join(folder, "whole.mjs"), others["whole.mjs"]);
  const adapters = { whole: { type: "module", path: "whole.mjs" } };
  const gateway = await openGateway(context, { folder, gateway: { adapters } });
  assert.deepEqual(await listModels(gateway.address), ["one", "two"]);
  const counted = await call(gateway.address, "POST", "/v1/responses/input_tokens", { model: "one", input: "hi" });
  assert.equal(counted.body.input_tokens, 7);
  assert.equal((await tell(gateway.address, { on: "chat", say: "hi" })).text, "hi");
  await gateway.close();
  assert.equal(Reflect.get(globalThis, "porticoTestClosed"), 1);
});

for (const [what, text, why] of [
  ["no default export", `export const make = 1;`, /default export/],
  ["a default export of another kind", `export default 5;`, /must be a function/],
  ["an adapter without stream", `export default () => ({ models() {} });`, /stream/],
  ["a function that throws", `export default () => { throw new Error("no url"); };`, /no url/],
  ["a syntax error", `export default\n  function ( {`, /adapter\.mts/],
  ["an import that does not exist", `import "no-such-package"; export default {};`, /no-such-package/],
  ["no file at all", undefined, /cannot find/i],
] as const) {
  test(`a gateway does not start with a module that has ${what}`, async (context) => {
    const path = join(makeFolder(context), "adapter.mts");
    if (text !== undefined) writeFileSync(path, text);
    const options = { gateway: { adapters: { mine: { type: "module", path } } } };
    const { message } = await whyNot(options, dirname(path));
    assert.match(message, /adapter\.mts/);
    assert.match(message, why);
  });
}
