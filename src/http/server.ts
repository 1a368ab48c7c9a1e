/** The front door's server: takes requests in, turns what their handlers return or throw into bytes, and closes. */
import { createServer as createNodeServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import { createAdmission, type Terms, toTerms } from "./admission.ts";
import type { Call, Result, Route } from "./call.ts";
import { watchConnections } from "./connections.ts";
import { answerMalformed, answerTunnel, closeUnread, draining, toErrorResult } from "./errors.ts";
import { createListener } from "./listener.ts";
import { createRequests, type RequestParts, uncountedBytes } from "./requests.ts";
import type { HttpSettings } from "./settings.ts";
import { createShares } from "./shares.ts";
import { asksForWebSocket, serveUpgrades } from "./upgrade.ts";

export interface ServerParts extends RequestParts {
  readonly routes: readonly Route[];
  /** Told of what was no request. */
  readonly refused: (error: GatewayError, id: string, address: string | undefined) => void;
}

export interface DoorServer {
  /** Resolves with the address. */
  listen(): Promise<string>;
  /** For all requests from now on. Where it listens stays as it is. */
  change(settings: HttpSettings): void;
  /** Lets in nobody new, and waits for what runs; what still does after that time is stopped, beginning with `interrupt`. */
  close(drainMs: number, interrupt: () => Promise<void>): Promise<void>;
  /** Requests that have a turn's place. */
  running(): number;
  /** Of bodies, and of answers that nobody has read. */
  heldBytes(): number;
}

const maxConnections = 10_000;
/** Longer than a proxy in front keeps an idle connection, so that it is never the gateway that closes first. */
const keepAliveMs = 130_000;
/** While it closes, how long a request may still be on its way, and a stopped one may take to tell its caller why. */
const arrivingMs = 500;
const stoppingMs = 1_000;

export function createServer(settings: HttpSettings, parts: ServerParts): DoorServer {
  const { routes, now, newId, refused } = parts;
  let terms = toTerms(settings);
  let isDraining = false;
  const server = createNodeServer(
    {
      headersTimeout: 10_000,
      connectionsCheckingInterval: 1_000,
      // A body may take long if it moves: whoever reads it watches.
      requestTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      // Said in the one shape instead.
      requireHostHeader: false,
      // Some clients offer `h2c` with every request.
      shouldUpgradeCallback: (request) => terms.settings.hasWebSocket && asksForWebSocket(request),
    },
    serve,
  );
  refuseMalformed(server, newId, refused);
  serveUpgrades(server, serve);
  // Whoever reads the body says that it may come; any other expectation is ignored.
  for (const expectation of ["checkExpectation", "checkContinue"]) {
    server.on(expectation, (request, response) => server.emit("request", request, response));
  }
  const listener = createListener(server, maxConnections);
  const connections = watchConnections(server, () => isDraining);
  const admit = createAdmission(routes, now, connections, () => isDraining);
  const shares = createShares();
  const requests = createRequests(parts, shares, (call) => admit.again(call, terms));
  const together = createCohort();

  function serve(request: IncomingMessage, response: ServerResponse, head?: Buffer): void {
    const own = terms;
    const { call, through } = requests.open(request, response, own, head);
    void answer(call, own)
      .catch((thrown: unknown) => fail(call, thrown))
      .catch(() => response.destroy())
      .finally(through);
  }

  async function answer(call: Call, own: Terms): Promise<void> {
    await together();
    // Its caller may have left meanwhile.
    if (call.response.destroyed) return;
    const { record } = call;
    const route = admit.first(call, own);
    const result = "handle" in route ? await route.handle(call) : route;
    record.isStreamed = result === undefined;
    if (result === undefined) return;
    if (record.said !== undefined && record.said.isRepeated !== true) record.firstWordAt = now();
    send(call, result);
  }

  function fail(call: Call, thrown: unknown): void {
    const { response, record } = call;
    let error = toGatewayError(thrown);
    // The turn was interrupted, not this caller.
    if (error.code === "interrupted" && isDraining) error = draining();
    if (response.destroyed) record.failure ??= error;
    else record.failure = error;
    if (response.headersSent || response.destroyed) return void response.destroy();
    closeUnread(call);
    send(call, toErrorResult(error));
  }

  function send(call: Call, { status = 200, body, headers }: Result): void {
    const { id, request, response } = call;
    if (response.headersSent || response.destroyed) return;
    const sent = typeof body === "object" && !Buffer.isBuffer(body) ? JSON.stringify(body) : body;
    const length = sent === undefined ? 0 : Buffer.byteLength(sent);
    // What a turn has made is sent in any case.
    if (request.method === "GET" && status < 400 && length > uncountedBytes(response)) call.share.checkBytes(length);
    if (isDraining || !connections.isTrusted(request.socket)) response.setHeader("connection", "close");
    response.writeHead(status, {
      ...(sent !== undefined && { "content-type": "application/json; charset=utf-8" }),
      // Without a length some browsers wait for a body.
      ...(status !== 304 && { "content-length": length }),
      // No cache may keep what a token has opened.
      "cache-control": "no-store",
      "x-request-id": id,
      ...headers,
    });
    response.end(request.method === "HEAD" ? undefined : sent);
  }

  async function stopLate(drainMs: number, interrupt: () => Promise<void>, signal: AbortSignal): Promise<void> {
    await wait(drainMs, undefined, { signal });
    // Whoever follows a turn that outlives its caller is told its end first.
    await Promise.race([interrupt(), wait(stoppingMs / 2, undefined, { signal })]);
    requests.stopAll(draining());
    await wait(stoppingMs, undefined, { signal });
    server.closeAllConnections();
    requests.cutAll();
  }

  return {
    listen: () => listener.listen(settings),
    change(next) {
      terms = toTerms(next);
    },
    async close(drainMs, interrupt) {
      isDraining = true;
      const over = new AbortController();
      const cutting = setInterval(connections.cutSilent, arrivingMs);
      const stopping = stopLate(drainMs, interrupt, over.signal).catch(() => {});
      await listener.close();
      clearInterval(cutting);
      over.abort();
      await stopping;
    },
    running: shares.entered,
    heldBytes: shares.bytes,
  };
}

function refuseMalformed(server: Server, newId: () => string, refused: ServerParts["refused"]): void {
  function refuse(socket: Socket, answer: (id: string) => GatewayError | undefined): void {
    const id = newId();
    const error = answer(id);
    if (error !== undefined) refused(error, id, socket.remoteAddress);
  }
  server.on("clientError", (error, socket) =>
    refuse(socket as Socket, (id) => answerMalformed(error, socket as Socket, id)),
  );
  server.on("connect", ({ socket }) => refuse(socket, (id) => answerTunnel(socket, id)));
}

/**
 * What came in one tick takes each step side by side: a turn's code does not fit the processor's cache, and all but the
 * first find it there.
 */
function createCohort(): () => Promise<void> {
  let next: Promise<void> | undefined;
  return () =>
    (next ??= new Promise((resolve) => {
      setImmediate(() => {
        next = undefined;
        resolve();
      });
    }));
}
