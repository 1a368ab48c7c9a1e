/**
 * Recorded bodies of real agents and SDKs, a file a case: a short conversation with a call, played in order to a
 * gateway, and what the model must see of each request.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gatherChunks } from "../../harness/chunks.ts";
import { withoutComments } from "../../harness/client.ts";
import { checkStream } from "../../harness/grammar.ts";
import { authorization, type Delta, gate, openGateway, say, seenBy } from "../../harness/house.ts";

type Fields = Readonly<Record<string, unknown>>;

interface Case {
  readonly client: string;
  readonly what: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Fields of every body that goes to `path`, but for those `without` them. */
  readonly always: Fields;
  readonly requests: readonly Request[];
}

interface Request {
  /** Where it is not the case's. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly without?: readonly string[];
  /** `{1.id}` is what the gateway has answered to the first; a list `as in 1` begins with all that is in that one's. */
  readonly body: Fields;
  /** The pieces of a text, or what else the model says; absent where it is not asked. */
  readonly answers?: readonly (string | Delta)[];
  readonly sees?: readonly string[];
  readonly history?: string;
  /** The model answers only when the next request has been answered. */
  readonly waits?: boolean;
}

const folder = import.meta.dirname;
const cases = readdirSync(folder)
  .filter((file) => file.endsWith(".json"))
  .map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")) as Case);

for (const { client, what, requests, ...common } of cases) {
  test(`${client}: ${what}`, async (context) => {
    const { address, model } = await openGateway(context);
    const bodies: Fields[] = [];
    const answers: unknown[] = [];
    const seen: string[][] = [];

    async function send(request: Request, index: number): Promise<void> {
      const { path = common.path, headers, without = [], sees, history } = request;
      const always = path === common.path ? common.always : {};
      const fields = Object.entries({ ...always, ...request.body }).filter(([name]) => !without.includes(name));
      const body = Object.fromEntries(
        fields.map(([name, value]) => [
          name,
          fill(
            expand(value, (earlier) => bodies[earlier]?.[name]),
            answers,
          ),
        ]),
      );
      bodies[index] = body;
      const response = await fetch(address + path, {
        method: "POST",
        headers: { authorization, "content-type": "application/json", ...common.headers, ...headers },
        body: JSON.stringify(body),
      });
      const raw = await response.text();
      assert.equal(response.status, 200, raw);
      answers[index] = readBody(body, raw);
      if (sees === undefined) return;
      assert.deepEqual(
        seen[index],
        expand(sees, (earlier) => seen[earlier]),
        `request ${index + 1}`,
      );
      assert.equal(response.headers.get("x-portico-history"), history, `request ${index + 1}`);
    }

    const answered = gate();
    let waiting: Promise<void> | undefined;
    for (const [index, request] of requests.entries()) {
      const asked = gate();
      model.script = async function* (turn) {
        seen[index] = seenBy(turn);
        asked.open();
        if (request.waits) await answered.opened;
        yield (request.answers ?? []).flatMap((each) => (typeof each === "string" ? say(each) : [each]));
      };
      const sending = send(request, index);
      if (request.waits) {
        waiting = sending;
        await Promise.race([asked.opened, sending]);
      } else {
        await sending;
        answered.open();
        await waiting;
      }
    }
    assert.equal(model.turns.length, requests.filter(({ sees }) => sees !== undefined).length);
  });
}

/** What the answer to a request says, as its wire's reader finds it. */
function readBody(body: Fields, raw: string): unknown {
  if (body["stream"] !== true) return JSON.parse(raw);
  if ("messages" in body) return gatherChunks(withoutComments(raw), body["stream_options"] !== undefined);
  return checkStream(withoutComments(raw)).response;
}

/** A list whose first word refers to an earlier one. */
function expand(value: unknown, read: (earlier: number) => unknown): unknown {
  if (!Array.isArray(value)) return value;
  const [, earlier] = /^as in (\d+)$/.exec(String(value[0])) ?? [];
  return earlier === undefined ? value : [...(read(Number(earlier) - 1) as unknown[]), ...value.slice(1)];
}

function fill(value: unknown, answers: readonly unknown[]): unknown {
  if (Array.isArray(value)) return value.map((each) => fill(each, answers));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fill(each, answers)]));
  }
  const [, earlier, path = ""] = /^\{(\d+)\.([\w.]+)\}$/.exec(String(value)) ?? [];
  if (earlier === undefined) return value;
  const found = path
    .split(".")
    .reduce((within, name) => (within as Fields)[name], answers[Number(earlier) - 1] as unknown);
  assert.equal(typeof found, "string", `the answer to request ${earlier} has ${path}`);
  return found;
}
