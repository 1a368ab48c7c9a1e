/** The front door: finds the route, checks the token, and turns a value or an error into bytes. */
import { createServer as createNodeServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, ListenOptions, Socket } from "node:net";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { checkDoor, createFindToken, createGuard, type FindToken } from "./access.ts";
import { type AddressOf, createAddressOf } from "./address.ts";
import type { Call, CallRecord, Result, Route } from "./call.ts";
import { answerCors, type Cors, createCors } from "./cors.ts";
import { answerMalformed, answerTunnel, closeUnread, toErrorResult } from "./errors.ts";
import { createRouter, toPath } from "./router.ts";
import type { HttpSettings, Token } from "./settings.ts";

export interface ServerParts {
  readonly routes: readonly Route[];
  readonly now: () => number;
  readonly newId: () => string;
  /** Told of each request, once, when it is over; and of what was no request. */
  readonly ended: (call: Call) => void;
  readonly refused: (error: GatewayError, id: string, address: string | undefined) => void;
}

export interface DoorServer {
  /** Resolves with the address. */
  listen(where: ListenOptions): Promise<string>;
  change(settings: HttpSettings): void;
  /** Accepts no connection; each closes with its next answer. Resolves when all are closed. */
  drain(): Promise<void>;
  /** Cuts what is left. */
  cut(): void;
}

/** What is made of the settings, once. */
interface Terms {
  readonly settings: HttpSettings;
  readonly find: FindToken;
  readonly addressOf: AddressOf;
  readonly cors: Cors;
}

const maxConnections = 10_000;
/** Longer than a proxy in front keeps an idle connection, so that it is never the gateway that closes first. */
const keepAliveMs = 130_000;

export function createServer(settings: HttpSettings, parts: ServerParts): DoorServer {
  const { routes, now, newId } = parts;
  const router = createRouter(routes);
  const guard = createGuard(now);
  let terms = toTerms(settings);
  let isDraining = false;

  const server: Server = createNodeServer(
    {
      headersTimeout: 10_000,
      connectionsCheckingInterval: 1_000,
      // A body may take long if it moves: whoever reads it watches.
      requestTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      // Said in the one shape instead.
      requireHostHeader: false,
    },
    serve,
  );
  server.maxConnections = maxConnections;
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

  function serve(request: IncomingMessage, response: ServerResponse): void {
    const { settings, addressOf } = terms;
    const { path } = toPath(request.url ?? "/");
    const record: CallRecord = {
      startedAt: now(),
      address: undefined,
      owner: undefined,
      failure: undefined,
      bug: undefined,
      said: undefined,
      firstWordAt: undefined,
    };
    const call: Call = { id: newId(), request, response, path, names: [], settings, token: nobody, record };
    record.address = addressOf(request);
    response.once("close", () => parts.ended(call));
    response.on("error", ignore);
    answer(call, terms).catch((bug: unknown) => {
      record.bug = bug;
      response.destroy();
    });
  }

  async function answer(call: Call, { find, settings, cors }: Terms): Promise<void> {
    try {
      const { request, path, response } = call;
      checkHost(request);
      if (answerCors(cors, call)) return;
      const allow = (methods: string): void => void response.setHeader("allow", methods);
      const isOpen = routes.some((route) => route.doors.length === 0 && route.path === path);
      if (!isOpen) {
        call.token = guard.admit(request.headers, find, () => call.record.address);
        call.record.owner = call.token.owner;
      }
      const { route, names } = router.find(request.method ?? "GET", path, allow);
      if (route.doors.length > 0) checkDoor(route.doors, call.token, settings.endpoints);
      if (isDraining && route.doors.length > 0) throw draining();
      const result = await route.handle({ ...call, names });
      if (result !== undefined) send(call, result);
    } catch (thrown) {
      fail(call, thrown);
    }
  }

  function fail(call: Call, thrown: unknown): void {
    const { response, record } = call;
    const error = toGatewayError(thrown);
    record.failure = error;
    if (error.code === "internal_error") record.bug = thrown;
    if (response.headersSent || response.destroyed) return void response.destroy();
    // Whoever has not shown a good token keeps no connection.
    if (error.status === 401 || error.code === "too_many_failures") response.setHeader("connection", "close");
    closeUnread(call);
    send(call, toErrorResult(error));
  }

  function send({ id, request, response }: Call, { status = 200, body, headers }: Result): void {
    if (response.headersSent || response.destroyed) return;
    const text = typeof body === "string" ? body : JSON.stringify(body);
    if (isDraining) response.setHeader("connection", "close");
    response.writeHead(status, {
      "content-type": "application/json; charset=utf-8",
      "content-length": Buffer.byteLength(text),
      "x-request-id": id,
      ...headers,
    });
    response.end(request.method === "HEAD" ? undefined : text);
  }

  return {
    listen: (where) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen({ backlog: 4096, ...where }, () => {
          server.off("error", reject);
          resolve(toUrl(server.address()));
        });
      }),
    change(settings) {
      terms = toTerms(settings);
    },
    drain() {
      isDraining = true;
      server.closeIdleConnections();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
    cut: () => server.closeAllConnections(),
  };
}

function toTerms(settings: HttpSettings): Terms {
  return {
    settings,
    find: createFindToken(settings.tokens),
    addressOf: createAddressOf(settings),
    cors: createCors(settings.corsOrigins),
  };
}

/** Of routes that ask for no token. */
const nobody: Token = { owner: "", sha256: "", opens: new Set() };

function ignore(): void {}

/** HTTP/1.1 demands exactly one, and the bytes of a name or an address. */
function checkHost({ rawHeaders, httpVersion, headers }: IncomingMessage): void {
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === "host");
  const isWrong =
    hosts.length > 1 || (hosts.length === 0 && httpVersion === "1.1") || /[\s/@?#\\,]/.test(headers.host ?? "");
  if (isWrong) throw new GatewayError("malformed_http", "The request must have exactly one well-formed Host header.");
}

function draining(): GatewayError {
  const remedy = "Send the request again; another instance or the restarted one will take it.";
  return new GatewayError("draining", `The gateway is shutting down. ${remedy}`, { retryAfterSeconds: 5 });
}

/** What a client can be pointed at. */
function toUrl(address: AddressInfo | string | null): string {
  if (address === null || typeof address === "string") return address ?? "";
  const host = address.address === "0.0.0.0" ? "127.0.0.1" : address.address;
  return `http://${address.family === "IPv6" ? `[${host}]` : host}:${address.port}`;
}
