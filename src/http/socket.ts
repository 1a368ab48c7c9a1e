/** The file of a unix socket: one that a killed process left behind is cleared. */
import { lstatSync, rmSync } from "node:fs";
import { connect } from "node:net";

/** Anything else that stands there, or a socket that is in use, is left alone: listening will tell. */
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
