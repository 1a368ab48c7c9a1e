/** The rest of the program as the commands see it, loaded only by those that need it. */
import type { Config } from "../config/config.ts";
import { ConfigError, problem, type Problem } from "../config/problem.ts";
import { messageOf } from "../core/errors.ts";
import type { Portico } from "../portico.ts";

export interface Runtime {
  /** Creates every adapter and closes it again; throws a ConfigError with the problems of those that fail. */
  tryAdapters(config: Pick<Config, "adapters" | "file">): Promise<void>;
  /** Builds the gateway, and listens. */
  open(config: Config): Promise<Running>;
}

export type Running = Pick<Portico, "address" | "log" | "reload" | "close">;

export const runtime: Runtime = {
  async tryAdapters({ adapters, file }) {
    const { createAdapter } = await import("../adapters/index.ts");
    const problems: Problem[] = [];
    for (const [name, chosen] of Object.entries(adapters)) {
      try {
        const adapter = await createAdapter(chosen, file);
        await adapter.close?.();
      } catch (thrown) {
        problems.push(problem(["gateway", "adapters", name], messageOf(thrown)));
      }
    }
    if (problems.length > 0) throw new ConfigError(problems, file);
  },
  async open(config) {
    const { loadAdapters } = await import("../adapters/index.ts");
    // Side by side, so that all our files are resolved before the first package is, while that is fast: see bin/run.js.
    const [{ createPortico }] = await Promise.all([import("../portico.ts"), loadAdapters(config.adapters)]);
    const portico = await createPortico(config);
    // Adapters are others' code: an unhandled rejection in one must not end the process and every stream.
    const { address, log, reload } = portico;
    const note = (err: unknown) =>
      log.error({ err }, "Something failed that nobody was waiting for. The gateway continues.");
    process.on("unhandledRejection", note);
    const close = () => portico.close().finally(() => process.off("unhandledRejection", note));
    return { address, log, reload, close };
  },
};
