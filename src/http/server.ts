/** The front door's server: takes requests in, turns what their handlers return or throw into bytes, and closes. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { Crowd } from "../core/crowd.ts";
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import { createAdmission, type Terms, toTerms } from "./admission.ts";
import { createBudget } from "./budget.ts";
import { Call, type CallObserver, type CallRecord, type Result, type Route } from "./call.ts";
import { watchConnections } from "./connections.ts";
import { closeUnread, draining, refuseMalformed, toErrorResult } from "./errors.ts";
import { toRemarkHeaders } from "./events.ts";
import { createListener } from "./listener.ts";
import { asksForWebSocket, toPath } from "./router.ts";
import type { HttpSettings } from "./settings.ts";
import type { Streams } from "./stream.ts";
import { serveUpgrades } from "./websocket/accept.ts";

export interface ServerParts {
  readonly routes: readonly Route[];
  readonly streams: Streams;
  readonly now: () => number;
  readonly newKey: () => string;
  readonly observer: CallObserver;
}

const { createServer: createNodeServer } = process.getBuiltinModule("node:http");

/** Longer than a proxy in front keeps an idle connection, so that it is never the gateway that closes first. */
const keepAliveMs = 130_000;
/** While it closes, how long a request may still be on its way, and a stopped one may take to tell its caller why. */
const arrivingMs = 500;
const stoppingMs = 1_000;
/** The system takes so much of an answer at once, unless it waits for earlier ones on its connection. */
const atOnceBytes = 64 * 1_024;

export function createServer(first: HttpSettings, { routes, streams, now, newKey, observer }: ServerParts) {
  let terms = toTerms(first);
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
  refuseMalformed(server, () => `req_${newKey()}`, observer.refused);
  serveUpgrades(server, serve);
  // Whoever reads the body says that it may come; any other expectation is ignored.
  server.on("checkExpectation", serve);
  server.on("checkContinue", serve);
  const listener = createListener(server, first.limits.maxConnections);
  const connections = watchConnections(server, () => isDraining);
  const budget = createBudget(now);
  const admit = createAdmission({ routes, now, budget, connections, isDraining: () => isDraining });
  const together = createCohort();
  const calls = new Crowd<Call>();
  const callParts = {
    now,
    open: budget.open,
    readmit: (call: Call) => admit.again(call, terms),
    ended(call: Call): void {
      calls.delete(call);
      observer.ended(call.record);
    },
  };

  function serve(request: IncomingMessage, response: ServerResponse, head?: Buffer): void {
    const own = terms;
    const { method, headers, url = "/" } = request;
    const record: CallRecord = {
      kind: "request",
      id: `req_${newKey()}`,
      clientId: headers["x-client-request-id"]?.toString(),
      trace: observer.begin(headers),
      method,
      path: toPath(url).path,
      address: own.addressOf(request),
      startedAt: now(),
      isQuiet: false,
      isStreamed: false,
      status: undefined,
      ms: 0,
    };
    const call = new Call(callParts, { request, response, settings: own.settings, record, head });
    calls.add(call);
    connections.begin(request);
    response.on("error", ignore);
    response.once("close", () => {
      connections.end(request);
      call.close();
    });
    void answer(call, own);
  }

  /** Never throws. */
  async function answer(call: Call, own: Terms): Promise<void> {
    try {
      await together();
      // Its caller may have left meanwhile.
      if (call.response.destroyed) return;
      const route = admit.first(call, own);
      const result = "handle" in route ? await route.handle(call) : route;
      if (result === undefined) call.record.isStreamed = true;
      else send(call, result);
    } catch (thrown) {
      fail(call, toGatewayError(thrown));
    } finally {
      call.leave();
    }
  }

  function fail(call: Call, thrown: GatewayError): void {
    const { response, record } = call;
    // The turn was interrupted, not this caller.
    const error = thrown.code === "interrupted" && isDraining ? draining() : thrown;
    // If the caller left, only an error with the same code replaces that.
    if (!response.destroyed || error.code === record.failure?.code) record.failure = error;
    else record.failure ??= error;
    if (response.headersSent || response.destroyed) return void response.destroy();
    closeUnread(call);
    send(call, toErrorResult(error, toRemarkHeaders(record.heading?.remarks ?? [])));
  }

  function send(call: Call, { status = 200, body, headers: own }: Result): void {
    const { request, response, record } = call;
    if (response.headersSent || response.destroyed) return;
    const sent = typeof body === "object" ? JSON.stringify(body) : body;
    const length = sent === undefined ? 0 : Buffer.byteLength(sent);
    // What a turn has made is sent in any case.
    if (length > atOnceBytes && request.method === "GET") call.share.take(length);
    else if (length > atOnceBytes) call.share.count(length);
    if (record.answer !== undefined) record.firstMs = now() - record.startedAt;
    if (isDraining || !connections.isTrusted(request.socket)) response.setHeader("connection", "close");
    const headers: Record<string, string | number> = { "cache-control": "no-store", "x-request-id": record.id };
    if (sent !== undefined) headers["content-type"] = "application/json; charset=utf-8";
    // Without a length some browsers wait for a body.
    headers["content-length"] = length;
    response.writeHead(status, Object.assign(headers, own));
    response.end(request.method === "HEAD" ? undefined : sent);
    if (response.writableLength > 0) streams.watch(response);
  }

  async function stopLate(drainMs: number, interrupt: () => Promise<void>, signal: AbortSignal): Promise<void> {
    await wait(drainMs, undefined, { signal });
    // Whoever follows a turn that outlives its caller is told its end first.
    await Promise.race([interrupt(), wait(stoppingMs / 2, undefined, { signal })]);
    for (const call of calls) call.stop(draining());
    await wait(stoppingMs, undefined, { signal });
    server.closeAllConnections();
    // Some have become connections of their own.
    for (const { request } of calls) request.socket.destroy();
  }

  return {
    /** Resolves with the address. */
    listen: () => listener.listen(first),
    /** For all requests from now on. Where it listens stays as it is. */
    change(next: HttpSettings): void {
      terms = toTerms(next);
    },
    /**
     * Accepts nothing new, and waits for running requests and for `settled`, the turns that outlive their caller. Anything
     * still running after `drainMs` is stopped, `interrupt` first.
     */
    async close(drainMs: number, settled: () => Promise<void>, interrupt: () => Promise<void>): Promise<void> {
      isDraining = true;
      const over = new AbortController();
      const cutting = setInterval(connections.cutSilent, arrivingMs);
      const stopping = stopLate(drainMs, interrupt, over.signal).catch(() => {});
      await Promise.all([listener.close(), settled()]);
      clearInterval(cutting);
      over.abort();
      await stopping;
    },
    /** Turns' places, and bytes of bodies and of answers that nobody has read. */
    held: budget.all,
  };
}

function ignore(): void {}

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
