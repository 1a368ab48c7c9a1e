/** nginx with a site of a page's, in a folder of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { need } from "./needs.ts";
import { endAfter, makeFolder, type Scope } from "./scope.ts";

/** Resolves once it listens. `files` are those that the site names, by their names. */
export async function startNginx(
  scope: Scope,
  site: string,
  files: Readonly<Record<string, string>> = {},
): Promise<void> {
  const folder = makeFolder(scope);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${kind};`);
  const user = process.getuid?.() === 0 ? "user root;" : "";
  writeFileSync(
    join(folder, "nginx.conf"),
    `${user} daemon off; worker_processes 1; pid nginx.pid; error_log stderr notice; events { worker_connections 4096; }
    http { access_log off; ${temporary.join(" ")}\n${site}\n}`,
  );
  const args = ["-e", "stderr", "-p", folder, "-c", "nginx.conf"];
  const nginx = spawn(need("nginx").path, args, { stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(nginx, "close");
  endAfter(scope, () => {
    nginx.kill("SIGTERM");
    return ended;
  });
  let said = "";
  await new Promise<void>((resolve, reject) => {
    nginx.stderr.setEncoding("utf8").on("data", (piece: string) => {
      said += piece;
      if (said.includes("start worker process ")) resolve();
    });
    void ended.then(() => reject(new Error(said)));
  });
}
