/** The front door put together: every path that the gateway answers, in one table, and the server before it. */
import type { IncomingHttpHeaders } from "node:http";
import type { GatewayError } from "../core/errors.ts";
import type { Gateway } from "../core/gateway.ts";
import type { Route as AdapterRoute } from "../core/route/route.ts";
import type { Operator } from "../core/store.ts";
import type { Trace } from "../core/turn.ts";
import { front as chat } from "../wires/chat/index.ts";
import { front as responses } from "../wires/responses/index.ts";
import type { Seal } from "../wires/wire.ts";
import type { Route } from "./call.ts";
import { createConsoleRoutes } from "./console.ts";
import { type ConversationParts, createConversationRoutes } from "./conversations.ts";
import { createModelRoutes } from "./models.ts";
import { createOperatorRoutes, type OperatorParts } from "./operator.ts";
import { createProbeRoutes } from "./probes.ts";
import { createResponseRoutes } from "./responses.ts";
import { createServer } from "./server.ts";
import type { HttpSettings } from "./settings.ts";
import { createStreams } from "./stream.ts";
import type { Told } from "./told.ts";
import { createTurnHandler } from "./turn.ts";
import { createWebSockets } from "./websocket.ts";

export interface DoorParts extends Omit<OperatorParts, "streams"> {
  readonly gateway: Gateway;
  readonly store: Operator & ConversationParts["store"];
  readonly route: AdapterRoute;
  readonly sealOf: (owner: string) => Seal;
  readonly observer: {
    begin(headers: IncomingHttpHeaders): Trace | undefined;
    ended(told: Told): void;
    refused(error: GatewayError, id: string, address: string | undefined): void;
    read(gauges: Gauges): Promise<{ readonly contentType: string; readonly text: string }>;
  };
}

/** What is measured only when somebody reads. */
interface Gauges {
  readonly running: number;
  readonly waiting: number;
  readonly background: number;
  readonly connections: number;
  readonly heldBytes: number;
  readonly isReady: boolean;
  readonly adapters: ReturnType<AdapterRoute["states"]>;
}

export interface OpenDoor {
  listen(): Promise<string>;
  change(settings: HttpSettings): void;
  close(): Promise<void>;
}

export function createDoor(first: HttpSettings, parts: DoorParts): OpenDoor {
  const { gateway, store, route, observer, now, newKey } = parts;
  let { limits } = first;
  const streams = createStreams(() => ({ heartbeatMs: limits.heartbeatMs, stalledMs: limits.stalledClientTimeoutMs }));
  const shared = { ...parts, streams };

  const sockets = createWebSockets({ ...shared, begin: observer.begin, ended: observer.ended });
  const readMetrics = async () =>
    observer.read({
      running: server.running(),
      waiting: gateway.waiting,
      background: gateway.running,
      connections: sockets.count(),
      heldBytes: server.heldBytes(),
      isReady: await store.check().then(
        () => true,
        () => false,
      ),
      adapters: route.states(),
    });

  const routes: readonly Route[] = [
    { method: "POST", path: "/v1/chat/completions", doors: ["chat"], handle: createTurnHandler(chat, shared) },
    { method: "POST", path: "/v1/responses", doors: ["responses"], handle: createTurnHandler(responses, shared) },
    sockets.route,
    ...createResponseRoutes(shared),
    ...createConversationRoutes(shared),
    ...createModelRoutes(() => route.models()),
    ...createOperatorRoutes(shared),
    ...createProbeRoutes({ check: () => store.check(), adapters: () => route.states(), readMetrics }),
    ...createConsoleRoutes(new URL("../console/", import.meta.url)),
  ];
  const { begin, ended, refused } = observer;
  const server = createServer(first, { routes, streams, now, newId: () => `req_${newKey()}`, begin, ended, refused });

  return {
    listen: () => server.listen(),
    change(settings) {
      ({ limits } = settings);
      server.change(settings);
    },
    async close() {
      sockets.retire();
      await server.close(limits.drainTimeoutMs, () => gateway.close());
      streams.close();
    },
  };
}
