/** Clears a unix socket that a killed process left behind. */
import { lstatSync, rmSync } from "node:fs";
import { connect } from "node:net";

/** Leaves alone anything else there, or a socket in use: listening will report it. */
export async function removeDeadSocket(path: string): Promise<void> {
  // A plain file refuses connections too.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return;
  if (await refuses(path)) rmSync(path, { force: true });
}

function refuses(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
}
