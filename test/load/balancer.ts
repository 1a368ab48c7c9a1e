/** nginx in front of replicas, as the page on scaling has it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findFreePort, makeFolder, endAfter, type Scope } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { root } from "../harness/program.ts";

/** Returns its address, once it listens. */
export async function startBalancer(scope: Scope, replicas: readonly number[]): Promise<string> {
  const page = readFileSync(join(root, "docs/scaling.md"), "utf8");
  const [, block = ""] = /^```nginx\n(.*?)^```$/ms.exec(page) ?? [];
  const folder = makeFolder(scope);
  const port = await findFreePort();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${kind};`);
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const site = replicas
    .reduce((text, own, index) => text.replace(`10.0.0.${index + 11}:8600`, `127.0.0.1:${own}`), block)
    .replace("listen 80", `listen 127.0.0.1:${port}`);
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
  return `http://127.0.0.1:${port}`;
}
