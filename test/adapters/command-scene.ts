/** Real programs behind the command adapter, for its tests. */
import assert from "node:assert/strict";
import { createCommand } from "./made.ts";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import type { Adapter, Remark } from "../../src/core/ports.ts";
import type { Turn } from "../../src/core/turn.ts";

export type Options = Parameters<typeof createCommand>[0];

/** The environment of the gateway's own process; programs see only what is allowed. */
export const environment = { PATH: process.env["PATH"], HOME: "/home/portico", SECRET_KEY: "sk-secret" };

export function turnOf(items: readonly Item[] | string, changes: Partial<Turn> = {}): Turn {
  const asked: readonly Item[] =
    typeof items === "string" ? [{ type: "message", role: "user", content: items }] : items;
  return { id: "resp_1", model: "model-1", items: asked, settings: { tools: [] }, stream: true, ...changes };
}

export async function collect(adapter: Adapter, turn: Turn, onRemark?: (remark: Remark) => void): Promise<Delta[]> {
  const deltas: Delta[] = [];
  for await (const batch of adapter.stream(turn, new AbortController().signal, onRemark)) deltas.push(...batch);
  return deltas;
}

export function textOf(deltas: readonly Delta[]): string {
  return deltas.map((delta) => (delta.type === "text" ? delta.text : "")).join("");
}

/** What a shell script answers. */
export async function answerOf(
  script: string,
  turn: Turn | string = "Hello",
  options: Partial<Options> = {},
): Promise<Delta[]> {
  const adapter = createCommand({ argv: ["sh", "-c", script], ...options }, environment);
  try {
    return await collect(adapter, typeof turn === "string" ? turnOf(turn) : turn);
  } finally {
    await adapter.close?.();
  }
}

export async function failureOf(answer: Promise<unknown>): Promise<GatewayError> {
  const thrown = await answer.then(
    () => assert.fail("It did not fail."),
    (failure: unknown) => failure,
  );
  assert.ok(thrown instanceof GatewayError, String(thrown));
  return thrown;
}
