/** What the tests of stored data share: the operator's routes, and where the data is. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type Answered, call } from "../harness/client.ts";
import { operatorToken } from "../harness/house.ts";

interface Listening {
  readonly address: string;
}

/** A request to `/operator/…` with the general token. */
export function operate(gateway: Listening, method: string, path: string): Promise<Answered> {
  return call(gateway.address, method, `/operator/${path}`, undefined, { token: operatorToken });
}

export async function exportArchive(gateway: Listening, query = ""): Promise<string> {
  const { status, raw } = await operate(gateway, "GET", `export${query}`);
  assert.equal(status, 200, raw);
  return raw;
}

export function importArchive(gateway: Listening, archive: string, type = "application/x-ndjson"): Promise<Answered> {
  const headers = { "content-type": type };
  return call(gateway.address, "POST", "/operator/import", archive, { token: operatorToken, headers });
}

export async function prune(gateway: Listening): Promise<void> {
  const { status, raw } = await operate(gateway, "POST", "prune");
  assert.equal(status, 200, raw);
}

export async function sessionIds(gateway: Listening, query = ""): Promise<string[]> {
  const { status, raw, body } = await operate(gateway, "GET", `sessions${query}`);
  assert.equal(status, 200, raw);
  return body.data.map(({ id }: { readonly id: string }) => id);
}

/** The default database of a gateway with this folder. */
export function databaseIn(folder: string): string {
  return join(folder, ".portico", "portico.db");
}

/** Looks again and again for what is about to come; a test that waits in vain fails, and does not look for ever. */
export async function until(isThere: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = Date.now() + 10_000;
  while (!(await isThere())) {
    assert.ok(Date.now() < endMs, "It never came.");
    await new Promise(setImmediate);
  }
}
