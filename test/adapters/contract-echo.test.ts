/** The echo adapter fulfils the contract: the caller's text directs what it answers. */
import { createEcho } from "./made.ts";
import type { Delta } from "../../src/core/delta.ts";
import type { Turn } from "../../src/core/turn.ts";
import { type Said, type Scenario, adapterContract } from "./contract.ts";

adapterContract(
  "echo",
  async (scenario, said) => {
    const inner = createEcho({ delay_ms: scenario === "drip" ? 1 : 0 });
    const gone = Promise.withResolvers<void>();
    let pushed = 0;

    async function* stream(turn: Turn, signal: AbortSignal): AsyncGenerator<readonly Delta[], void, void> {
      try {
        for await (const batch of inner.stream(toDirected(turn, scenario, said), signal)) {
          pushed += batch.length;
          yield batch;
        }
      } finally {
        gone.resolve();
      }
    }
    return {
      adapter: { stream },
      gone: gone.promise,
      hanging: Promise.resolve(),
      pushed: () => pushed,
      close: async () => {},
    };
  },
  { callIds: false, tokenDetails: false },
);

/** The turn that makes echo answer as the scenario asks. */
function toDirected(turn: Turn, scenario: Scenario, said: Said): Turn {
  const text = said.pieces.join("");
  const user = (content: string): Turn => ({ ...turn, items: [{ type: "message", role: "user", content }] });
  switch (scenario) {
    case "text":
    case "reasoning":
    case "drip":
      return user(text);
    case "parallel-tools":
      return user(said.calls.map((call) => `CALL ${call.name} ${call.arguments}`).join("\n"));
    case "usage":
      // It counts words: those of the text, and four more of the instructions.
      return { ...user(text), settings: { ...turn.settings, instructions: "Say it word for" } };
    case "length":
      return {
        ...user(`${text}rest of it`),
        settings: { ...turn.settings, maxOutputTokens: said.pieces.length },
      };
    case "error-before":
      return user(`ERROR ${said.failure?.code} now`);
    case "error-after":
      return user(`FAIL after ${said.pieces.length} ${text}`);
    case "hang":
      return user("SLEEP 60000 Hello");
    case "flood":
      return user(`REPEAT 9000 ${text.trim()}`);
  }
}
