/** A gateway as its own process, which can be killed in the middle of a turn, before a model's server. */
import type { TestContext } from "node:test";
import { messagesOf, replyWith, startServer } from "../harness/client.ts";
import { outlastSilence, withStore } from "../harness/engine.ts";
import { gate, makeFolder } from "../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import type { Script } from "../harness/upstream.ts";
import type { Stage } from "./histories.ts";
import { callIdOf, kindOf, wordsOf } from "./script.ts";

export async function openKillableStage(scope: TestContext): Promise<Stage> {
  const folder = makeFolder(scope);
  const server = await startServer(scope, { retries: 0 });
  writeConfig(folder, toConfig({ gateway: await withStore(folder, { adapters: server.adapters }) }));
  const start = () => runProgram(scope, folder, "start");
  let program = start();
  let address = await program.address();
  let asked = gate();
  let killing: Promise<unknown> = Promise.resolve();

  async function restart(): Promise<void> {
    await killing;
    await program.stop("SIGKILL");
    await outlastSilence(folder);
    program = start();
    address = await program.address();
  }

  return {
    get address() {
      return address;
    },
    rehearse(answer, fate, moment = 2) {
      const before = server.received.length;
      asked = gate();
      const kill = () => (killing = program.stop("SIGKILL"));
      const act = replyWith(() => toMessage(answer));
      const script: Script = (received, response) => {
        asked.open();
        if (fate === "fails before") return void response.writeHead(400).end("{}");
        if (fate === "fails after")
          return void response.writeHead(200, { "content-type": "text/event-stream" }).end(half);
        if (fate === "leaves") return void response.writeHead(200, { "content-type": "text/event-stream" }).write(half);
        if (fate === "crash" && moment === 0) return void kill();
        const told = act(received, response);
        if (fate === "crash" && moment === 1) response.on("finish", kill);
        return told;
      };
      server.script = script;
      return () => {
        const received = server.received[before];
        return received && messagesOf(received).flatMap(toLines);
      };
    },
    // The socket to the model is cut when the caller's is; nothing more can be seen from outside.
    aborted: async () => {},
    restart,
  };
}

const half = `data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"half"}}]}\n\n`;

function toMessage(answer: readonly string[]) {
  const text = answer.find((line) => kindOf(line) === "assistant");
  const calls = answer.filter((line) => kindOf(line) === "call");
  const tool_calls = calls.map((line, index) => {
    return { index, id: callIdOf(line), type: "function", function: { name: "f", arguments: "{}" } };
  });
  return { ...(text && { content: wordsOf(text) }), ...(calls.length > 0 && { tool_calls }) };
}

interface Call {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

function toLines(message: ReturnType<typeof messagesOf>[number]): string[] {
  const { role, content, tool_call_id: id, tool_calls: calls = [] } = message;
  if (role === "tool") return [`output ${id}: ${content}`];
  const made = (calls as readonly Call[]).map((call) => {
    return `call ${call.id}: ${call.function.name} ${call.function.arguments}`;
  });
  return [...(content ? [`${role}: ${content}`] : []), ...made];
}
