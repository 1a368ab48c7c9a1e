/** The unit of docs/operating.md and the telemetry of docs/monitoring.md, unchanged: what systemd runs, and the spans of the last turn. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { compiled } from "../compiled.ts";
import { makeFolder } from "../gateway.ts";
import { root, toConfig, writeConfig } from "./program.ts";
import { tellWell } from "./talk.ts";

const unit = blockOf("operating", "ini");
const checkout = "/srv/portico/";
const words = /^ExecStart=(.*)$/m.exec(unit)?.[1]?.split(" ") ?? [];
const [program = "", ...args] = words.map((word) => word.replace(checkout, root));
const verifier = "systemd-analyze";
const skip = spawnSync(verifier, ["--version"]).status === 0 ? false : "no systemd here";

suite("the systemd unit", () => {
  test("passes systemd's verification", { skip }, (context) => {
    const folder = makeFolder(context);
    const file = join(folder, "portico.service");
    // The checkout's own path may have characters that a unit would have to quote.
    symlinkSync(root, join(folder, "checkout"));
    writeFileSync(file, unit.replaceAll(checkout, join(folder, "checkout/")), { mode: 0o644 });
    const { stderr } = spawnSync(verifier, ["verify", file], { encoding: "utf8" });
    // What it reports about the machine's own units does not matter.
    const said = stderr.split("\n").filter((line) => line.includes("portico.service"));
    assert.deepEqual(said, []);
  });

  test("starts a gateway that answers, reloads its configuration, and stops cleanly", async (context) => {
    const service = startService(context);
    assert.equal((await tellWell(await service.address, { on: "chat", say: "hello" })).text, "hello");
    service.kill("SIGHUP");
    await service.said(/^Reloaded/m);
    assert.equal(await service.stop(), 0);
  });
});

test("the spans of the last turn are exported before a gateway with telemetry exits", async (context) => {
  const folder = makeFolder(context);
  const [api, sdk] = ["@opentelemetry/api", "@opentelemetry/sdk-trace-base"].map((name) => import.meta.resolve(name));
  // The SDK for Node is not among our packages: this one collects spans in the same way, and prints them.
  writeFileSync(
    join(folder, "sdk.mjs"),
    `import { trace } from "${api}";
    import { BasicTracerProvider, BatchSpanProcessor, ConsoleSpanExporter } from "${sdk}";
    const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(new ConsoleSpanExporter())] });
    export class NodeSDK {
      start() { trace.setGlobalTracerProvider(provider); }
      shutdown() { return provider.shutdown(); }
    }`,
  );
  const telemetry = join(folder, "telemetry.mjs");
  writeFileSync(telemetry, blockOf("monitoring", "mjs").replace("@opentelemetry/sdk-node", "./sdk.mjs"));
  const service = startService(context, { NODE_OPTIONS: `--import ${pathToFileURL(telemetry).href}` });
  await tellWell(await service.address, { on: "responses", say: "hello" });
  assert.equal(await service.stop(), 0);
  await service.said(/name: 'POST \/v1\/responses'/);
});

function blockOf(page: "operating" | "monitoring", kind: string): string {
  const pageText = readFileSync(join(root, `docs/${page}.md`), "utf8");
  const [, text = ""] = new RegExp(`^\`\`\`${kind}\\n(.*?)^\`\`\`$`, "ms").exec(pageText) ?? [];
  return text;
}

/** Runs the unit's own command, with a folder of the test in place of the machine's. */
function startService(context: TestContext, env: NodeJS.ProcessEnv = {}) {
  const folder = makeFolder(context);
  const config = writeConfig(folder, toConfig());
  const own = args.map((arg) => arg.replace("/etc/portico/portico.json", config));
  const environment = { HOME: folder, OLLAMA_HOST: "127.0.0.1:1", NODE_COMPILE_CACHE: compiled, ...env };
  const child = spawn(program, own, { cwd: folder, env: environment, stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "close");
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  context.after(() => {
    child.kill("SIGKILL");
    return ended;
  });

  async function said(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(output);
      if (found !== null) return found;
      assert.equal(child.stdout.readableEnded, false, `${String(pattern)} was never printed: ${output}`);
      await Promise.race([once(child.stdout, "data"), ended]);
    }
  }

  return {
    said,
    address: said(/listens on (\S+)\n/).then(([, address = ""]) => address),
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    async stop(): Promise<unknown> {
      child.kill("SIGTERM");
      const [code] = await ended;
      return code;
    },
  };
}
