/** What a model is shown of a request, without what only one dialect knows. */
import assert from "node:assert/strict";
import { type Endpoint, tellWell } from "../harness/client.ts";
import { type Gateway, say, type Turn } from "../harness/house.ts";

/** Asks, and returns the turn that the model got. */
export async function ask(
  { address, model }: Gateway,
  on: Endpoint,
  more: object,
  said: Wish["say"] = "Hi",
): Promise<Turn> {
  model.script = [say("ok")];
  await tellWell(address, { on, say: said, more: { store: false, ...more } });
  return model.turns.at(-1)!;
}

type Wish = Parameters<typeof tellWell>[1];

/** Without absent fields, and without what only the caller's dialect knows. */
export function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, each) => (key === "extra" || key === "native" ? undefined : each)));
}

/** The settings have these values; what else they have is not looked at. */
export function assertSettings({ settings }: Turn, expected: object): void {
  const found = plain(settings) as Record<string, unknown>;
  assert.deepEqual(plain(Object.fromEntries(Object.keys(expected).map((key) => [key, found[key]]))), plain(expected));
}
