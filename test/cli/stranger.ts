/** Another user of the machine, for whom what is closed stays closed. */
import { chmodSync, statSync } from "node:fs";

/** A user who has nothing here; on most systems its name is nobody. */
const nobody = 65_534;

/** Acts while a file or a folder is closed. Whoever is root, whom nothing is closed to, steps down meanwhile. */
export async function whileClosed<Result>(path: string, act: () => Result | Promise<Result>): Promise<Result> {
  const isRoot = process.geteuid?.() === 0;
  const { mode } = statSync(path);
  chmodSync(path, 0);
  if (isRoot) process.seteuid?.(nobody);
  try {
    return await act();
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(path, mode);
  }
}
