/** The front door put together: every route over the gateway, one listener, and how it is changed and closed. */
import type { Gateway } from "../core/gateway.ts";
import type { Route as AdapterRoute } from "../core/route/route.ts";
import { front as chat } from "../wires/chat/index.ts";
import { front as responses } from "../wires/responses/index.ts";
import type { Seal } from "../wires/wire.ts";
import type { CallRecord, Route } from "./call.ts";
import { createModelRoutes } from "./models.ts";
import { createServer } from "./server.ts";
import type { HttpSettings } from "./settings.ts";
import { createStreams } from "./stream.ts";
import { createTurnHandler } from "./turn.ts";

export interface DoorParts {
  readonly gateway: Gateway;
  readonly route: AdapterRoute;
  readonly sealOf: (owner: string) => Seal;
  readonly now: () => number;
  readonly newKey: () => string;
  readonly log: { info(fields: object, message: string): void; error(fields: object, message: string): void };
}

export interface OpenDoor {
  listen(): Promise<string>;
  change(settings: HttpSettings): void;
  close(): Promise<void>;
}

export function createDoor(first: HttpSettings, { gateway, route, sealOf, now, newKey, log }: DoorParts): OpenDoor {
  let settings = first;
  const streams = createStreams(() => ({
    heartbeatMs: settings.limits.heartbeatMs,
    stalledMs: settings.limits.stalledClientTimeoutMs,
  }));
  const parts = { gateway, streams, sealOf, now };
  const routes: readonly Route[] = [
    { method: "POST", path: "/v1/chat/completions", doors: ["chat"], handle: createTurnHandler(chat, parts) },
    { method: "POST", path: "/v1/responses", doors: ["responses"], handle: createTurnHandler(responses, parts) },
    ...createModelRoutes(() => route.models()),
    { method: "GET", path: "/healthz", doors: [], handle: () => ({ body: { status: "ok" } }) },
  ];
  const server = createServer(settings, {
    routes,
    now,
    newId: () => `req_${newKey()}`,
    ended: ({ id, request, response, record }) => tell(id, request.method, request.url, response.statusCode, record),
    refused: (error, id, address) => log.info({ requestId: id, code: error.code, address }, "refused"),
  });

  function tell(requestId: string, method = "", path = "", status: number, { owner, bug }: CallRecord): void {
    if (bug !== undefined) log.error({ err: bug, requestId }, "request failed");
    log.info({ requestId, method, path, status, owner }, "request");
  }

  return {
    listen: () => server.listen({ host: settings.bind, port: settings.port }),
    change(next) {
      settings = next;
      server.change(next);
    },
    async close() {
      const drained = server.drain();
      const overdue = setTimeout(() => server.cut(), settings.limits.drainTimeoutMs);
      await drained;
      clearTimeout(overdue);
      streams.close();
    },
  };
}
