/** The WebSocket form of the responses endpoint: accepts or refuses upgrades, and closes connections in the end. */
import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { drainingError, GatewayError } from "../core/errors.ts";
import type { Token } from "./auth.ts";
import { toRouteUrl } from "./paths.ts";
import type { Terms } from "./terms.ts";
import { type Connection, openConnection } from "./websocket/connection.ts";
import { switchedOff } from "./websocket/turn.ts";
import { asksForWebSocket, createUpgrades } from "./websocket/upgrades.ts";

export interface WebSockets {
  /** Whether a request leaves HTTP; any other request to upgrade is ignored. */
  isUpgrade(incoming: IncomingMessage): boolean;
  /** Makes the listener accept upgrades. */
  install(app: FastifyInstance): void;
  /** Accepts an upgrade, or refuses it with a status, while one can still be sent. */
  accept(request: FastifyRequest, reply: FastifyReply): void;
  /** How many connections are open. */
  count(): number;
  /** Lets running responses end, then closes their connections. */
  retire(): void;
  /** Ends all connections at once. */
  cut(): void;
}

/** The path of upgrades: that of the HTTP form. */
const path = "/v1/responses";

/** `current` is read for every connection and every turn, since it may change. */
export function createWebSockets(current: () => Terms): WebSockets {
  const connections = new Map<Connection, string>();
  const upgrades = createUpgrades();

  return {
    isUpgrade: (incoming) =>
      asksForWebSocket(incoming) && current().webSocket.enabled && toRouteUrl(incoming.url).split("?", 1)[0] === path,
    install: upgrades.attach,
    accept(request, reply) {
      const { enabled, maxConnections } = current().webSocket;
      if (!enabled) {
        reply.headers({ upgrade: "HTTP/1.1", connection: "upgrade" });
        throw switchedOff();
      }
      if (!upgrades.has(request.raw))
        throw new GatewayError("malformed_http", "An upgrade needs the header 'Connection: Upgrade'.");
      if (connections.size >= maxConnections) {
        throw new GatewayError(
          "overloaded",
          `There are already ${maxConnections} connections (gateway.http.websocket.max_connections). Use POST ${path}, or try again shortly.`,
          { retryAfterSeconds: 5 },
        );
      }
      checkShare(request.token, connections);
      reply.hijack();
      upgrades.accept(request, current().limits.maxBodyBytes, (socket) => {
        request.isUpgraded = true;
        // On a protocol violation, the library closes with the right code before it emits this.
        socket.on("error", () => {});
        const connection = openConnection(current, socket, request);
        connections.set(connection, request.token.owner);
        socket.once("close", () => connections.delete(connection));
      });
    },
    count: () => connections.size,
    retire() {
      const closePlan = { closeCode: 1001, reason: drainingError(), isAlwaysSent: false };
      for (const connection of connections.keys()) connection.retire(closePlan);
    },
    cut() {
      for (const connection of connections.keys()) connection.cut();
    },
  };
}

/** A client needs a connection for each running turn, and may keep some idle. */
const minConnections = 4;

/** A token with limited turns has no use for many more connections. */
function checkShare(
  { owner, maxConcurrentTurns = Infinity }: Token,
  connections: ReadonlyMap<Connection, string>,
): void {
  const most = Math.max(maxConcurrentTurns, minConnections);
  if (most === Infinity) return;
  let own = 0;
  for (const each of connections.values()) if (each === owner) own++;
  if (own < most) return;
  throw new GatewayError(
    "rate_limit_exceeded",
    `This token may have ${most} connections at the same time. Close one, or use POST ${path}.`,
    { retryAfterSeconds: 5 },
  );
}
