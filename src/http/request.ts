/** One HTTP request: what Node tells of it, and what becomes known on its way to an answer. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Token } from "./auth.ts";
import type { RequestRecord } from "./journal.ts";
import type { Params, Route } from "./router.ts";
import type { Terms } from "./terms.ts";

export interface HttpRequest extends RequestRecord {
  readonly id: string;
  readonly raw: IncomingMessage;
  readonly method: string;
  /** The target, as it was sent. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly socket: Socket;
  /** Those it arrived under. */
  readonly terms: Terms;
  /** The route at its path, whatever its method. */
  readonly route: Route | undefined;
  /** What stands in its path for the route's parameters. */
  readonly params: Params;
  /** The caller's token; absent only on routes that need none. */
  token: Token;
  /** It has become a connection whose turns have lines of their own. */
  isUpgraded: boolean;
}

/** What is known of a request when it arrives. */
export type Arrived = Pick<HttpRequest, "id" | "raw" | "terms" | "route" | "params">;

/** All requests have one shape, which is faster. */
export function createRequest({ id, raw, terms, route, params }: Arrived): HttpRequest {
  const { method = "", url = "", headers, socket } = raw;
  return {
    id,
    raw,
    method,
    url,
    headers,
    socket,
    terms,
    route,
    params,
    // Set at admission, before any route that needs one.
    token: undefined as unknown as Token,
    isUpgraded: false,
    about: undefined,
    failure: undefined,
    firstByte: undefined,
    usage: undefined,
    span: undefined,
  };
}
