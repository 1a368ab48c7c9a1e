/** What the tests of adapters share: gateways whose adapters are asked by name, and what is made once for a file. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { constants, openSync } from "node:fs";
import { Socket } from "node:net";
import { after } from "node:test";
import { call } from "../harness/client.ts";
import { type Delta, openPortico, type Options, type Scope, toSettings } from "../harness/house.ts";

export type Usage = Extract<Delta, { type: "usage" }>["usage"];
export type Finish = Exclude<Extract<Delta, { type: "finish" }>["reason"], "interrupted">;

/** Settings in which the model's name is the adapter's, so that one gateway holds many. */
export function byName(names: readonly string[]) {
  return { default_adapter: names[0], models: Object.fromEntries(names.map((name) => [name, name])) };
}

/** Makes something at the first call, for all tests of a file, and ends it after them. */
export function share<Value>(make: (scope: Scope) => Promise<Value>): () => Promise<Value> {
  const ends: (() => unknown)[] = [];
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  let made: Promise<Value> | undefined;
  return () => (made ??= make({ after: (end) => void ends.push(end) }));
}

/** The reading end of a pipe: it ends when the last process that holds the other end has gone. */
export function makePipe(path: string) {
  assert.equal(spawnSync("mkfifo", [path]).status, 0);
  // Opened as a stream of a file, it would hold a thread until somebody writes, even beyond the end of this process.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stream = new Socket({ fd, readable: true, writable: false }).setEncoding("utf8").unref();
  let said = "";
  stream.on("data", (piece) => (said += String(piece)));
  return { written: once(stream, "data"), ended: once(stream, "end").then(() => said) };
}

/** The ids that `/v1/models` lists. */
export async function listModels(address: string, token?: string): Promise<string[]> {
  const { body } = await call(address, "GET", "/v1/models", undefined, token === undefined ? {} : { token });
  return body.data.map(({ id }: { id: string }) => id);
}

/** Why a gateway with these settings does not start. */
export async function whyNot(options: Options, folder: string, surroundings: object = {}): Promise<Error> {
  const opened = await openPortico(toSettings(options), { folder, env: {}, ...surroundings }).catch(
    (thrown: Error) => thrown,
  );
  if (opened instanceof Error) return opened;
  await opened.close();
  return assert.fail("It starts.");
}

export const user = (content: unknown) => ({ role: "user", content });
