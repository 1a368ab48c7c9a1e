/** A caller that disconnects stops the adapter within 100 ms, whatever its type. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { request as send } from "node:http";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { wires } from "../adapters/ai-sdk-wires.ts";
import { makeFolder, startGateway, token } from "../gateway.ts";
import { beginEvents, chunk, type ScriptedUpstream, startUpstream } from "../upstream.ts";
import { hear, paths, tell, toRequest } from "./talk.ts";
import { startStopwatch } from "../stopwatch.ts";

interface Scene {
  readonly adapter: Record<string, unknown>;
  /** Resolves when the adapter's source has been released. */
  released(received: string, address: string): Promise<unknown>;
}

/** A server that sends half an answer and then nothing. */
async function startHalf(
  context: TestContext,
  half: string,
  toAdapter: (server: ScriptedUpstream) => Record<string, unknown>,
): Promise<Scene> {
  const server = await startUpstream((_, response) => {
    beginEvents(response);
    response.write(half);
  });
  context.after(() => server.close());
  return { adapter: toAdapter(server), released: () => once(server.sockets[0]!, "close") };
}

const say = (event: unknown) => `data: ${JSON.stringify(event)}\n\n`;
const textDelta = { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "half" };

const scenes: Readonly<Record<string, (context: TestContext) => Promise<Scene>>> = {
  "openai (chat)": (context) =>
    startHalf(context, say(chunk({ content: "half" })), ({ url }) => ({ type: "openai", base_url: `${url}/v1` })),
  "openai (responses)": (context) =>
    startHalf(context, say(textDelta), ({ url }) => ({ type: "openai", base_url: `${url}/v1`, wire: "responses" })),
  ...Object.fromEntries(
    wires.map((wire) => [
      `ai-sdk (${wire.packageName})`,
      (context: TestContext) =>
        startHalf(context, wire.begin() + wire.say(["half"]), ({ url }) => ({
          type: "ai-sdk",
          package: wire.packageName,
          options: wire.toOptions(url),
        })),
    ]),
  ),
  async command() {
    return {
      adapter: { type: "command", argv: ["sh", "-c", "trap '' TERM; echo half of $$; sleep 300"], output: "text" },
      async released(received) {
        const processId = Number(/half of (\d+)/.exec(received)?.[1]);
        while (isRunning(processId)) await pause(1);
      },
    };
  },
  async module(context) {
    const path = join(makeFolder(context), "adapter.mjs");
    const code = `export default { async *stream(turn, signal) {
      yield [{ type: "text", text: "half" }];
      signal.addEventListener("abort", () => process.emit("let-go"));
      await new Promise(() => {});
    } };`;
    writeFileSync(path, code);
    return { adapter: { type: "module", path }, released: () => once(process, "let-go") };
  },
  async echo() {
    return {
      adapter: { type: "echo", delay_ms: 2 },
      // It holds nothing but its slot.
      async released(_, address) {
        while ((await tell(address, { on: "chat", say: "next" })).status === 503);
      },
    };
  },
};

for (const [name, open] of Object.entries(scenes)) {
  test(`${name}: a caller that disconnects during a stream releases the adapter within 100 ms`, async (context) => {
    const { adapter, released } = await open(context);
    const endpoints = { compat_chat: true, compat_responses: true };
    const { address } = await startGateway(context, {
      http: { port: 0, auth_token: token, endpoints, limits: { max_concurrent_turns: 1 } },
      adapters: { model: adapter },
      sessions: { store: "memory:" },
    });
    const { method, headers, body } = toRequest({ on: "chat", say: "half ".repeat(20_000), stream: true });
    const request = send(address + paths.chat, { method, headers }).end(body);
    request.on("error", () => {});
    const [response] = await once(request, "response");
    const received = await hear(response, "half");
    const watch = startStopwatch();
    const left = released(received, address);
    request.destroy();
    await left;
    const tookMs = watch.stop();
    assert.ok(tookMs < 100, `${tookMs} ms`);
  });
}

function isRunning(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}
