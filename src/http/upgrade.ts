/** Requests to become a WebSocket: each passes the same checks as any other, and is refused like one. */
import { type IncomingMessage, type Server, ServerResponse } from "node:http";

export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && method === "GET" && headers.upgrade.toLowerCase() === "websocket";
}

/** Node brings upgrades without a response, which a refusal needs. */
export function serveUpgrades(
  server: Server,
  serve: (request: IncomingMessage, response: ServerResponse, head: Buffer) => void,
): void {
  server.on("upgrade", (request, _stream, head) => {
    const { socket } = request;
    // Node has just released it, and an unhandled error would end the process.
    socket.on("error", () => socket.destroy());
    const response = new ServerResponse(request);
    // Node parses no more requests on this connection.
    response.shouldKeepAlive = false;
    response.once("finish", () => socket.destroy());
    try {
      response.assignSocket(socket);
    } catch {
      // It was pipelined behind a request that is still answered: the two answers could not be told apart.
      return void socket.destroy();
    }
    serve(request, response, head);
  });
}
