/** A table of wrong bodies, each refused before the model is asked, with the field and a code for programs. */
import assert from "node:assert/strict";
import { call, type Endpoint, paths } from "../harness/client.ts";
import { shareGateway } from "../harness/house.ts";

/** The wrong fields beside an otherwise right body, the path in the error, its code, and a word of its message. */
export type Row = readonly [fields: Readonly<Record<string, unknown>>, param: string, code: string, word?: string];

const right = { chat: { messages: [{ role: "user", content: "Hi" }] }, responses: { input: "Hi" } } as const;

/** A test for each row: its name, and what it does. */
export function toTests(on: Endpoint, rows: readonly Row[], open = shareGateway()) {
  return rows.map(([fields, param, code, word = param]) => {
    const name = `${on}: ${write(fields)} is refused with '${param}' and ${code}`;
    return [name, run] as const;

    async function run(): Promise<void> {
      const { address, model } = await open();
      const asked = model.turns.length;
      const { status, body, raw } = await call(address, "POST", paths[on], { model: "any", ...right[on], ...fields });
      assert.equal(status, 400, raw);
      assert.deepEqual(Object.keys(body), ["error"]);
      const { message, ...error } = body.error;
      assert.deepEqual(error, { type: "invalid_request_error", param, code });
      assert.ok(message.includes(word), message);
      assert.equal(model.turns.length, asked, "the model is not asked");
    }
  });
}

/** The fields as they stand in a test's name: shortened, and with those that are absent. */
function write(fields: object): string {
  const text = JSON.stringify(fields, (_, value) => (value === undefined ? "(absent)" : value));
  return text.length > 120 ? `${[...text].slice(0, 60).join("")}…` : text;
}
