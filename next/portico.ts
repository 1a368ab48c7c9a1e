/** The composition root: it makes every part of a gateway from a configuration, and closes them in reverse order. */
import { hash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { Adapter } from "./core/adapter.ts";
import { createGateway, type Gateway } from "./core/gateway.ts";
import type { Call, Route } from "./http/call.ts";
import { createModelRoutes } from "./http/models.ts";
import { createServer } from "./http/server.ts";
import type { HttpSettings } from "./http/settings.ts";
import { createStreams } from "./http/stream.ts";
import { createTurnHandler } from "./http/turn.ts";
import { createKeys } from "./ids.ts";
import { createSeal } from "./seal.ts";
import { openSqlite } from "./store/sqlite.ts";
import { front as chat } from "./wires/chat/index.ts";
import { front as responses } from "./wires/responses/index.ts";

export interface Config {
  readonly http: HttpSettings;
  readonly storeFile: string;
}

export interface Log {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface Surroundings {
  readonly adapter: Adapter;
  readonly log: Log;
  readonly now: () => number;
}

export interface Composed {
  /** Where it listens; undefined if both endpoints are off. */
  readonly address: string | undefined;
  readonly gateway: Gateway;
  close(): Promise<void>;
}

export async function startPortico(config: Config, { adapter, log, now }: Surroundings): Promise<Composed> {
  mkdirSync(dirname(config.storeFile), { recursive: true, mode: 0o700 });
  const store = await openSqlite(config.storeFile);
  const newKey = createKeys(now);
  const { http } = config;
  const gateway = createGateway({
    store,
    adapter,
    now,
    newKey,
    hash: (text) => hash("sha1", text, "base64url"),
    maxWaiting: () => http.limits.maxQueuedPerThread,
    report: (error, key) => log.error({ err: error, turn: key }, "turn failed"),
  });
  const streams = createStreams(() => ({
    heartbeatMs: http.limits.heartbeatMs,
    stalledMs: http.limits.stalledClientTimeoutMs,
  }));
  const parts = { gateway, streams, sealOf: createSeal(store.sealKey), now };
  const routes: readonly Route[] = [
    { method: "POST", path: "/v1/chat/completions", doors: ["chat"], handle: createTurnHandler(chat, parts) },
    { method: "POST", path: "/v1/responses", doors: ["responses"], handle: createTurnHandler(responses, parts) },
    ...createModelRoutes(async () => (await adapter.models?.()) ?? []),
    { method: "GET", path: "/healthz", doors: [], handle: () => ({ body: { status: "ok" } }) },
  ];
  const ended = ({ id, request, record, response }: Call): void => {
    if (record.bug !== undefined) log.error({ err: record.bug, requestId: id }, "request failed");
    const { method, url } = request;
    log.info({ requestId: id, method, path: url, status: response.statusCode, owner: record.owner }, "request");
  };
  const server = createServer(http, {
    routes,
    now,
    newId: () => `req_${newKey()}`,
    ended,
    refused: (error, id, address) => log.info({ requestId: id, code: error.code, address }, "refused"),
  });
  const isOpen = http.endpoints.chat || http.endpoints.responses;
  const address = isOpen ? await server.listen({ host: http.bind, port: http.port }) : undefined;
  return {
    address,
    gateway,
    async close() {
      if (isOpen) {
        const drained = server.drain();
        const overdue = setTimeout(() => server.cut(), http.limits.drainTimeoutMs);
        await drained;
        clearTimeout(overdue);
      }
      streams.close();
      await adapter.close?.();
      await store.close();
    },
  };
}
