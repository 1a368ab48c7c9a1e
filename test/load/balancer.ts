/** nginx in front of replicas, as the page on scaling has it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findFreePort, type Scope } from "../harness/house.ts";
import { startNginx } from "../harness/nginx.ts";
import { root } from "../harness/program.ts";

/** Returns its address, once it listens. */
export async function startBalancer(scope: Scope, replicas: readonly number[]): Promise<string> {
  const page = readFileSync(join(root, "docs/scaling.md"), "utf8");
  const [, block = ""] = /^```nginx\n(.*?)^```$/ms.exec(page) ?? [];
  const port = await findFreePort();
  const site = replicas
    .reduce((text, own, index) => text.replace(`10.0.0.${index + 11}:8600`, `127.0.0.1:${own}`), block)
    .replace("listen 80", `listen 127.0.0.1:${port}`);
  await startNginx(scope, site);
  return `http://127.0.0.1:${port}`;
}
