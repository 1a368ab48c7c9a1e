/** A gateway in a process of its own, so that its CPU time can be told from that of the model and the client. */
import { type OnWords, readSpent } from "./watch.ts";

/** What the process is started with, as JSON. */
export interface Wanted {
  readonly file: string;
  readonly token: string;
  readonly model: string;
}

/** What it has spent since its start, in microseconds. */
export interface Spent extends OnWords {
  /** CPU time of the thread on which everything runs. */
  readonly cpu: number;
}

/** Its first message is its address; then every message is answered with what was spent. */
const { file, token, model } = JSON.parse(process.argv[2] ?? "{}") as Wanted;
const { openPortico } = await import("../src/index.ts");
const portico = await openPortico({
  gateway: {
    http: { port: 0, auth_token: token, endpoints: { compat_chat: true }, limits: { max_messages: 100_000 } },
    sessions: { store: `sqlite:${file}`, max_turns_per_thread: 1_000_000 },
    adapters: { model: { type: "openai", base_url: `${model}/v1`, api_key: "none" } },
    log: { level: "silent" },
  },
});
process.on("message", () => {
  const { user, system } = process.threadCpuUsage();
  process.send?.({ cpu: user + system, ...readSpent() } satisfies Spent);
});
process.on("disconnect", () => void portico.close());
process.send?.(portico.address);
