/** Runs a gateway in its own process, so that its CPU time is separate from the model's and the client's. */
import { type OnWords, readSpent } from "./watch.ts";

/** The process's argument, as JSON. */
export interface Wanted {
  readonly file: string;
  readonly token: string;
  readonly model: string;
}

/** What it has spent since its start, in microseconds. */
export interface Spent extends OnWords {
  /** CPU time of the main thread. */
  readonly cpu: number;
}

/** Sends its address first; then answers every message with what was spent. */
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
