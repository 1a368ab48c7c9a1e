/** One of the processes of a gateway (`gateway.workers`): it does what its parent asks until that lets go of it. */
import cluster from "node:cluster";
import type { Portico } from "../portico.ts";
import { type Ask, connect } from "./channel.ts";
import { CommandError, UsageError } from "./command.ts";
import { openGateway } from "./open.ts";
import { messageOf, outlastOutput } from "./output.ts";

/** Returns the exit code. It drains as soon as the channel is closed: by the parent, or because there is none any more. */
export async function work(): Promise<number> {
  const { worker: self } = cluster;
  if (self === undefined) throw new UsageError("Workers are started by 'portico start', as gateway.workers says.");
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  self.once("disconnect", release);
  // Node would end it at once.
  self.exitedAfterDisconnect = true;
  // A terminal and systemd send signals to every process; what they mean only the parent knows.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  outlastOutput();

  let opening: Promise<Portico> | undefined;
  let running: Portico | undefined;
  const ask: Ask = connect(self, async (question) => {
    switch (question.type) {
      case "start":
        opening = openGateway(question.config, () => ask({ type: "measure" }));
        running = await opening;
        return running.address ?? "";
      case "reload":
        await (await opening)?.reload(question.config);
        return "";
      case "measure":
        return (await running?.measure()) ?? "";
    }
  });

  await released;
  await running?.close().catch((thrown: unknown) => {
    throw new CommandError(`A worker did not stop cleanly: ${messageOf(thrown)}`);
  });
  return 0;
}
