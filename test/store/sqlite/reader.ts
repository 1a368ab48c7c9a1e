/** A program that has the store's file open and reads it, as an open `sqlite3` shell does. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { endAfter, type Scope } from "../../harness/house.ts";

const script = `
const { DatabaseSync } = require("node:sqlite");
const database = new DatabaseSync(process.argv[1]);
database.exec("BEGIN");
database.prepare("SELECT count(*) FROM turn").get();
console.log("It reads.");
process.stdin.once("data", () => {
  database.exec("COMMIT");
  console.log("It has let go.");
});`;

/** A process of its own, for a test that reads the same files would release its locks. `letGo`: it leaves them open. */
export async function openReader(scope: Scope, file: string): Promise<{ letGo(): Promise<void> }> {
  const child = spawn(process.execPath, ["-e", script, file], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "close");
  endAfter(scope, () => {
    child.kill("SIGKILL");
    return ended;
  });
  await once(child.stdout, "data");
  return {
    async letGo() {
      child.stdin.write("\n");
      await once(child.stdout, "data");
    },
  };
}
