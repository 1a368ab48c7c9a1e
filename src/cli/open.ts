/** Opens the gateway of one process, or says in a sentence why it cannot be. */
import type { Config, HttpConfig } from "../config/config.ts";
import { codeOf, ConfigError } from "../config/problem.ts";
import type { Portico } from "../portico.ts";
import { CommandError } from "./command.ts";
import { messageOf } from "./output.ts";
import { describeProblems } from "./settings.ts";

/** Throws what the operator can do something about. `measureAll`: see `startPortico`. */
export async function openGateway(config: Config, measureAll?: () => Promise<string>): Promise<Portico> {
  // Not before the settings are right: it is most of the house.
  const { startPortico } = await import("../portico.ts");
  const portico = await startPortico(config, {}, { measureAll, mayMigrate: true }).catch((thrown: unknown) => {
    if (thrown instanceof ConfigError) throw thrown;
    throw new CommandError(explainFailure(thrown, config.http));
  });
  // Adapters are others' code: what one forgets must not end the process and every stream.
  process.on("unhandledRejection", (err) => {
    portico.log.error({ err }, "Something failed that nobody was waiting for. The gateway continues.");
  });
  return portico;
}

/** What was thrown, for the operator to read. */
export function explain(thrown: unknown): string {
  return thrown instanceof ConfigError ? describeProblems(thrown) : messageOf(thrown);
}

/** In one sentence. */
function explainFailure(thrown: unknown, { bind, port }: HttpConfig): string {
  // For a worker it is its parent that binds.
  const isListening = thrown instanceof Error && "syscall" in thrown && /^(listen|bind)$/.test(String(thrown.syscall));
  if (!isListening) return `Portico could not start: ${messageOf(thrown)}`;
  const remedy = "stop who has it, or choose another (--bind, --port)";
  return `gateway.http.bind, gateway.http.port: cannot listen on ${bind}, port ${port} (${codeOf(thrown)}); ${remedy}.`;
}
