/** A gateway in a process of its own, so that its CPU time can be told from that of the model and the client. */
import { openPortico } from "../src/index.ts";

/** What the process is started with, as JSON. */
export interface Wanted {
  readonly file: string;
  readonly token: string;
  readonly model: string;
}

/** Its first message is its address; then every message is answered with the CPU time so far, in microseconds. */
const { file, token, model } = JSON.parse(process.argv[2] ?? "{}") as Wanted;
const portico = await openPortico({
  gateway: {
    http: { port: 0, auth_token: token, endpoints: { compat_chat: true }, limits: { max_messages: 100_000 } },
    sessions: { store: `sqlite:${file}`, max_turns_per_thread: 1_000_000 },
    adapters: { model: { type: "openai", base_url: `${model}/v1`, api_key: "none" } },
    log: { level: "silent" },
  },
});
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
process.on("disconnect", () => void portico.close());
process.send?.(portico.address);
