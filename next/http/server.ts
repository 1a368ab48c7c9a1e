/** The front door: lets requests in, turns what their handlers return or throw into bytes, tells of each, and closes. */
import { createServer as createNodeServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { callerLeft, type GatewayError, toGatewayError } from "../core/errors.ts";
import type { Trace } from "../core/turn.ts";
import { type Admit, createAdmission, nobody, type Terms, toTerms } from "./admission.ts";
import type { Call, Result, Route } from "./call.ts";
import { watchConnections } from "./connections.ts";
import { answerMalformed, answerTunnel, closeUnread, draining, toErrorResult } from "./errors.ts";
import { createListener } from "./listener.ts";
import { toPath } from "./router.ts";
import type { HttpSettings } from "./settings.ts";
import { createShares, type Share } from "./shares.ts";
import type { Streams } from "./stream.ts";
import { type Told, toTold } from "./told.ts";
import { asksForWebSocket, serveUpgrades } from "./upgrade.ts";

export interface ServerParts {
  readonly routes: readonly Route[];
  readonly streams: Streams;
  readonly now: () => number;
  readonly newId: () => string;
  /** Its place in its caller's trace. */
  readonly begin: (headers: IncomingHttpHeaders) => Trace | undefined;
  /** Told of each request, once, when it is over; and of what was no request. */
  readonly ended: (told: Told) => void;
  readonly refused: (error: GatewayError, id: string, address: string | undefined) => void;
}

export interface DoorServer {
  /** Resolves with the address. */
  listen(): Promise<string>;
  /** For all requests from now on. Where it listens stays as it is. */
  change(settings: HttpSettings): void;
  /**
   * Lets in nobody new, and waits until what runs has ended. What still runs after that time is stopped: first the turns
   * that outlive their callers, by `interrupt`.
   */
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
  const { routes, streams, now, newId, begin, ended } = parts;
  let terms: Terms = toTerms(settings);
  let isDraining = false;
  const shares = createShares();
  /** What stops each request that is not over. */
  const stops = new Set<(reason: GatewayError) => void>();

  const server: Server = createNodeServer(
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
  const connections = watchConnections(server, () => isDraining);
  const listener = createListener(server, maxConnections);
  const admit: Admit = createAdmission(routes, now, connections, () => isDraining);
  serveUpgrades(server, serve);
  // Whoever reads the body says that it may come; any other expectation is ignored.
  for (const expectation of ["checkExpectation", "checkContinue"]) {
    server.on(expectation, (request, response) => server.emit("request", request, response));
  }
  server.on("clientError", (error, socket) =>
    refuse(socket as Socket, (id) => answerMalformed(error, socket as Socket, id)),
  );
  server.on("connect", ({ socket }) => refuse(socket, (id) => answerTunnel(socket, id)));

  function refuse(socket: Socket, answer: (id: string) => GatewayError | undefined): void {
    const id = newId();
    const error = answer(id);
    if (error !== undefined) parts.refused(error, id, socket.remoteAddress);
  }

  function serve(request: IncomingMessage, response: ServerResponse, head?: Buffer): void {
    const own = terms;
    const { settings, addressOf } = own;
    let control: AbortController | undefined;
    let reason: GatewayError | undefined;
    let share: Share | undefined;
    let endedAt: number | undefined;
    let isThrough = false;

    const call: Call = {
      id: newId(),
      request,
      response,
      path: toPath(request.url ?? "/").path,
      names: [],
      settings,
      token: nobody,
      head,
      get signal() {
        control ??= new AbortController();
        if (reason !== undefined) control.abort(reason);
        return control.signal;
      },
      get share() {
        return (share ??= shares.open(call.token, settings.limits.maxConcurrentTurns));
      },
      readmit() {
        const { settings } = terms;
        const token = admit.again(call, terms);
        return { settings, token, share: shares.open(token, settings.limits.maxConcurrentTurns) };
      },
      record: {
        startedAt: now(),
        trace: begin(request.headers),
        address: addressOf(request),
        isStreamed: false,
        isUpgraded: false,
        isQuiet: false,
      },
    };
    const { record } = call;

    function stop(why: GatewayError): void {
      reason ??= why;
      control?.abort(reason);
    }
    function end(): void {
      if (endedAt === undefined || !isThrough) return;
      share?.release();
      stops.delete(stop);
      ended(toTold(call, endedAt));
    }

    stops.add(stop);
    response.on("error", ignore);
    response.once("close", () => {
      endedAt = now();
      if (!response.writableFinished && !record.isUpgraded) {
        const left = callerLeft();
        record.failure ??= left;
        stop(left);
      }
      end();
    });
    void answer(call, own).finally(() => {
      isThrough = true;
      share?.leave();
      const unread = response.closed ? 0 : response.writableLength;
      if (unread > uncountedBytes(response)) call.share.addBytes(unread);
      if (unread > 0 && !record.isStreamed) streams.watch(response);
      end();
    });
  }

  async function answer(call: Call, own: Terms): Promise<void> {
    const { response, record } = call;
    try {
      const route = admit.first(call, own);
      const result = "handle" in route ? await route.handle(call) : route;
      if (result !== undefined) send(call, result);
      else record.isStreamed = true;
    } catch (thrown) {
      try {
        fail(call, toGatewayError(thrown));
      } catch (bug) {
        record.failure = toGatewayError(bug);
        response.destroy();
      }
    }
  }

  function fail(call: Call, thrown: GatewayError): void {
    const { response, record } = call;
    // The turn was interrupted, not this caller.
    const error = thrown.code === "interrupted" && isDraining ? draining() : thrown;
    if (response.headersSent || response.destroyed) {
      record.failure ??= error;
      return void response.destroy();
    }
    record.failure = error;
    closeUnread(call);
    send(call, toErrorResult(error, record.heading ?? record.said?.heading));
  }

  function send(call: Call, { status = 200, body, headers }: Result): void {
    const { id, request, response, record } = call;
    if (response.headersSent || response.destroyed) return;
    const sent = typeof body === "object" && !Buffer.isBuffer(body) ? JSON.stringify(body) : body;
    const length = sent === undefined ? 0 : Buffer.byteLength(sent);
    // What a turn has made is sent in any case.
    if (request.method === "GET" && status < 400 && length > uncountedBytes(response)) call.share.checkBytes(length);
    if (isDraining || !connections.isTrusted(request.socket)) response.setHeader("connection", "close");
    if (record.said !== undefined && record.said.isRepeated !== true) record.firstWordAt ??= now();
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

  return {
    listen: () => listener.listen(settings),
    change(next) {
      terms = toTerms(next);
    },
    async close(drainMs, interrupt) {
      isDraining = true;
      const over = new AbortController();
      const cutting = setInterval(connections.cutSilent, arrivingMs);
      const cut = cutLate(drainMs, interrupt, over.signal).catch(ignore);
      await listener.close();
      clearInterval(cutting);
      over.abort();
      await cut;
    },
    running: shares.entered,
    heldBytes: shares.bytes,
  };

  async function cutLate(drainMs: number, interrupt: () => Promise<void>, signal: AbortSignal): Promise<void> {
    await wait(drainMs, undefined, { signal });
    // Whoever follows a turn that outlives its caller is told its end first.
    await Promise.race([interrupt(), wait(stoppingMs / 2, undefined, { signal })]);
    for (const stop of stops) stop(draining());
    await wait(stoppingMs, undefined, { signal });
    server.closeAllConnections();
  }
}

function ignore(): void {}

/** The system takes so much of an answer at once, unless it waits for earlier ones on its connection. */
function uncountedBytes({ socket }: ServerResponse): number {
  return socket === null ? 1_024 : 64 * 1_024;
}
