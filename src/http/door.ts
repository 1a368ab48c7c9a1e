/** The front door put together: every path that the gateway answers, in one table, and the server before it. */
import type { Gateway } from "../core/gateway.ts";
import type { Route as AdapterRoute } from "../core/route/route.ts";
import type { Operator } from "../core/store.ts";
import { front as chat } from "../wires/chat/index.ts";
import { front as responses } from "../wires/responses/index.ts";
import type { Seal } from "../wires/wire.ts";
import { behind, type CallObserver, type Handler, type Route } from "./call.ts";
import { createConsoleRoutes } from "./console.ts";
import { type ConversationParts, createConversationRoutes } from "./conversations.ts";
import { createModelRoutes } from "./models.ts";
import { createOperatorRoutes, type OperatorParts } from "./operator.ts";
import { createResponseRoutes } from "./responses.ts";
import { createServer } from "./server.ts";
import type { HttpSettings } from "./settings.ts";
import { createStreams } from "./stream.ts";
import { createTurnHandler } from "./turn.ts";
import { createWebSockets } from "./websocket/accept.ts";

interface DoorParts extends Omit<OperatorParts, "streams"> {
  readonly gateway: Gateway;
  readonly store: Operator & ConversationParts["store"];
  readonly route: AdapterRoute;
  readonly sealOf: (owner: string) => Seal;
  readonly observer: CallObserver & { read(gauges: Gauges): Promise<string> };
  /** The metrics of every process of the gateway; undefined: there is only this one. */
  readonly measureAll: (() => Promise<string>) | undefined;
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

export function createDoor(first: HttpSettings, parts: DoorParts) {
  const { gateway, store, route, observer, measureAll = measure } = parts;
  let { limits } = first;
  const streams = createStreams(() => ({ heartbeatMs: limits.heartbeatMs, stalledMs: limits.stalledClientTimeoutMs }));
  const shared = { ...parts, streams };

  const sockets = createWebSockets(shared);

  /** Whether it can take turns. The adapters' names are the operator's. */
  const ready: Handler = async ({ token }) => {
    await store.check();
    const adapters = Object.fromEntries(route.states().map(({ name, state }) => [name, state]));
    return { body: { status: "ready", ...(token.opens.has("operator") && { adapters }) } };
  };

  async function measure(): Promise<string> {
    const isReady = await store.check().then(
      () => true,
      () => false,
    );
    return observer.read({
      running: server.held.turns,
      waiting: gateway.waiting,
      background: gateway.running,
      connections: sockets.count(),
      heldBytes: server.held.bytes,
      isReady,
      adapters: route.states(),
    });
  }

  const metrics: Handler = async () => ({
    body: await measureAll(),
    headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
  });

  const routes: readonly Route[] = [
    behind("chat")("POST", "/v1/chat/completions", createTurnHandler(chat, shared)),
    behind("responses")("POST", "/v1/responses", createTurnHandler(responses, shared)),
    sockets.route,
    ...createResponseRoutes(shared),
    ...createConversationRoutes(shared),
    ...createModelRoutes(() => route.models()),
    ...createOperatorRoutes(shared),
    behind()("GET", "/healthz", () => ({ body: { status: "ok" } })),
    behind()("GET", "/readyz", ready),
    behind("metrics", "operator")("GET", "/metrics", metrics),
    ...createConsoleRoutes(new URL("../console/", import.meta.url)),
  ];
  const server = createServer(first, { ...shared, routes });

  return {
    listen: () => server.listen(),
    /** What Prometheus reads of this process. */
    measure,
    change(settings: HttpSettings): void {
      ({ limits } = settings);
      server.change(settings);
    },
    async close(): Promise<void> {
      sockets.retire();
      await server.close(limits.drainTimeoutMs, gateway.settled, () => gateway.close());
      streams.close();
    },
  };
}
