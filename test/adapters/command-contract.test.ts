/** The command adapter fulfils the contract, with a program that writes what the test sends it. */
import { createServer, type Socket } from "node:net";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCommand } from "./made.ts";
import { type Said, type Scenario, adapterContract } from "./contract.ts";

/**
 * The program holds a connection to the test: over it the test sends what the program shall write, and when the
 * connection ends the program ends. For a flood it writes the same line again and again, and a file grows by a byte
 * with each: a program that is blocked by its reader can report its progress in no other way.
 */
const program = `
const { openSync, writeSync } = require("node:fs");
const { connect } = require("node:net");
const [, socket, tally, times] = process.argv;
const test = connect(socket);
if (times === "1") test.pipe(process.stdout);
else test.once("data", (line) => {
  const counted = openSync(tally, "a");
  for (let left = Number(times); left > 0; left -= 1) {
    writeSync(counted, ".");
    writeSync(1, line);
  }
});
`;

adapterContract("command", async (scenario, said) => {
  const folder = mkdtempSync(join(tmpdir(), "portico-command-"));
  const gone = Promise.withResolvers<void>();
  const server = createServer((connection) => {
    connection.on("close", () => gone.resolve());
    connection.on("error", () => {});
    void play(scenario, said, connection);
  });
  const tally = join(folder, "tally");
  const times = scenario === "flood" ? said.times : 1;
  const socket = join(folder, "test.sock");
  await once(server.listen(socket), "listening");
  const adapter = createCommand({ argv: [process.execPath, "-e", program, socket, tally, String(times)] }, process.env);
  return {
    adapter,
    gone: gone.promise,
    pushed: () => statSync(tally).size,
    async close() {
      await adapter.close?.();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
});

async function play(scenario: Scenario, said: Said, connection: Socket): Promise<void> {
  const say = (line: object) => void connection.write(`${JSON.stringify(line)}\n`);
  for (const text of said.reasoning) say({ type: "reasoning", text });
  for (const [index, text] of said.pieces.entries()) {
    if (scenario === "drip") await said.received(index);
    say({ type: "text", text });
  }
  if (scenario === "hang" || scenario === "flood") return;
  for (const [index, call] of said.calls.entries()) {
    say({ type: "tool-call", index, call_id: call.callId, name: call.name });
    say({ type: "tool-arguments", index, text: call.arguments });
  }
  if (said.failure !== undefined) say({ type: "error", code: said.failure.code, message: said.failure.message });
  else {
    const { inputTokens, cachedTokens, outputTokens, reasoningTokens } = said.usage;
    say({
      type: "usage",
      input_tokens: inputTokens,
      cached_tokens: cachedTokens,
      output_tokens: outputTokens,
      reasoning_tokens: reasoningTokens,
    });
    say({ type: "finish", reason: said.finish });
  }
  connection.end();
}
