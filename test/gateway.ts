/** Whole gateways for tests: from the text of a config file to a listening socket, in this process. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { openPortico, type Portico, type PorticoSettings } from "../src/index.ts";

export const token = "sk-gateway-0123456789abcdef";

/**
 * Ends what a test started, and releases it: the runner retains what it is told to do after a test as long as it lives.
 */
export function endAfter(context: TestContext, end: () => unknown): void {
  let ending: typeof end | undefined = end;
  context.after(async () => {
    await ending?.();
    ending = undefined;
  });
}

/** A folder that is removed after the test. */
export function makeFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "portico-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A free port of the loopback address, outside of the range that the system assigns to connections. */
export async function findFreePort(): Promise<number> {
  const port = randomInt(20_000, 32_000);
  const server = createServer().listen(port, "127.0.0.1");
  const isFree = await once(server, "listening").then(
    () => true,
    () => false,
  );
  server.close();
  return isFree ? port : findFreePort();
}

export interface Gateway extends Portico {
  readonly address: string;
}

export const open = { port: 0, auth_token: token, endpoints: { compat_chat: true, compat_responses: true } };

/** Starts a gateway with both endpoints on a free port of the loopback address; `gateway` overrides these settings. */
export async function startGateway(
  context: TestContext,
  gateway: Record<string, unknown>,
  folder = makeFolder(context),
): Promise<Gateway> {
  const file = {
    gateway: {
      http: open,
      log: { level: "silent" },
      ...gateway,
    },
  };
  const portico = await openPortico(file as PorticoSettings, { folder, env: {} });
  endAfter(context, () => portico.close());
  if (portico.address === undefined) throw new Error("the gateway does not listen");
  return { ...portico, address: portico.address };
}

/** A gateway whose adapter uses chat completions of another gateway, whose adapter is the echo. */
export async function startChain(context: TestContext, adapter: Record<string, unknown> = {}): Promise<Gateway> {
  const model = await startGateway(context, {
    http: { ...open, expose_reasoning: true },
    // Retrying is up to the gateway in front.
    adapters: { echo: { type: "echo", retry: { times: 0 }, breaker: { failures: 0 } } },
  });
  return startGateway(context, {
    adapters: { upstream: { type: "openai", base_url: `${model.address}/v1`, api_key: token, ...adapter } },
  });
}
