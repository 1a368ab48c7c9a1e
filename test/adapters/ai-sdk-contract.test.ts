/**
 * The ai-sdk adapter fulfils the contract with every package, against a server that speaks the provider's wire format.
 */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type Script, answerJson, beginEvents, startUpstream } from "../upstream.ts";
import { type Wire, answerStream, createAdapter, push, wires } from "./ai-sdk-wires.ts";
import { type Said, type Scenario, adapterContract } from "./contract.ts";

for (const wire of wires) {
  adapterContract(`ai-sdk (${wire.packageName})`, async (scenario, said) => {
    const gone = Promise.withResolvers<void>();
    const count = { pushed: 0 };
    const script = toScript(wire, scenario, said, count);
    const server = await startUpstream((received, response) => {
      void once(response, "close").then(() => gone.resolve());
      return script(received, response);
    });
    return {
      adapter: createAdapter(wire, server.url),
      gone: gone.promise,
      pushed: () => count.pushed,
      close: () => server.close(),
    };
  });
}

function toScript(wire: Wire, scenario: Scenario, said: Said, count: { pushed: number }): Script {
  const before = [
    wire.begin(said.usage),
    ...(said.reasoning.length > 0 ? [wire.reason(said.reasoning)] : []),
    ...(said.pieces.length > 0 ? [wire.say(said.pieces)] : []),
  ];
  switch (scenario) {
    case "error-before": {
      const { status = 0, message = "" } = said.failure ?? {};
      return answerJson(wire.refuse(status, message), status);
    }
    case "error-after":
      return answerStream(...before, wire.fail(said.failure?.status ?? 0, said.failure?.message ?? ""));
    case "hang":
      return (_, response) => {
        beginEvents(response);
        response.write(before.join(""));
      };
    case "flood":
      return (_, response) => flood(wire, said, count, response);
    case "drip":
      return async (_, response) => {
        beginEvents(response);
        response.write(wire.begin(said.usage));
        for (const [index, piece] of said.pieces.entries()) {
          await said.received(index);
          response.write(wire.say([piece]));
        }
        response.end(wire.end(said.finish, said.usage));
      };
    default: {
      const calls = said.calls.length > 0 ? wire.call(said.calls) : "";
      return answerStream(...before, calls, wire.end(said.finish, said.usage));
    }
  }
}

async function flood(wire: Wire, said: Said, count: { pushed: number }, response: ServerResponse): Promise<void> {
  const closed = once(response, "close");
  const text = wire.say(said.pieces);
  beginEvents(response);
  response.write(wire.begin(said.usage));
  for (; count.pushed < said.times && !response.destroyed; count.pushed++) {
    await Promise.race([push(response, text), closed]);
  }
}
