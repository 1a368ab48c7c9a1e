/** The module adapter fulfils the contract, with a module that emits what the scenario asks. */
import type { Delta } from "../../src/core/delta.ts";
import type { Turn } from "../../src/core/turn.ts";
import { guardAdapter } from "../../src/adapters/module/guard.ts";
import { adapterContract } from "./contract.ts";

adapterContract("module", async (scenario, said) => {
  const gone = Promise.withResolvers<void>();
  let pushed = 0;

  async function* stream(_turn: Turn, signal: AbortSignal): AsyncGenerator<readonly Delta[], void, void> {
    signal.addEventListener("abort", () => gone.resolve());
    for (const text of said.reasoning) yield [{ type: "reasoning", text }];
    for (const [index, text] of said.pieces.entries()) {
      if (scenario === "drip") await said.received(index);
      const times = scenario === "flood" ? said.times : 1;
      for (let time = 0; time < times; time += 1) {
        pushed += 1;
        yield [{ type: "text", text }];
      }
    }
    // A module that ignores the signal, and never returns.
    if (scenario === "hang") await new Promise(() => {});
    yield said.calls.flatMap((call, index): Delta[] => [
      { type: "tool-call", index, callId: call.callId, name: call.name },
      { type: "tool-arguments", index, text: call.arguments },
    ]);
    if (said.failure !== undefined) throw Object.assign(new Error(said.failure.message), { code: said.failure.code });
    yield [
      { type: "usage", usage: said.usage },
      { type: "finish", reason: said.finish },
    ];
  }

  return { adapter: guardAdapter({ stream }), gone: gone.promise, pushed: () => pushed, close: async () => {} };
});
