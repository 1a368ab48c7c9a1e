/** The HTTP client that adapters share: kept-alive connections, firm deadlines, and bytes that wait to be pulled. */
import { createCohort } from "../../core/cohort.ts";
import { startExchange } from "./exchange.ts";
import { createRoute } from "./route.ts";
import { readTarget } from "./target.ts";

export interface UpstreamOptions {
  /** `http://…`, `https://…` or `unix:/path/to.sock`, with an optional path that precedes every request's own. */
  readonly baseUrl: string;
  /** A proxy's URL, or false for none; absent: the environment decides. */
  readonly proxy?: string | false | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
}

export interface UpstreamRequest {
  readonly method: "GET" | "POST";
  /** Below the base URL: `/chat/completions`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | undefined;
  /** The time limit for the whole exchange, silent or not; absent: no limit while bytes come. */
  readonly totalMs?: number | undefined;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /**
   * Everything since the last pull, as soon as there is something; undefined at the end. Throws if the upstream fails.
   */
  pull(): Promise<readonly Buffer[] | undefined>;
  /** To be called when no more will be pulled: an answer about to end keeps its connection, any other is cut. */
  leave(): void;
}

/** A header's value, or the first of several. */
export function headerOf({ headers }: Pick<UpstreamResponse, "headers">, name: string): string | undefined {
  return [headers[name]].flat()[0];
}

export interface Upstream {
  /**
   * Resolves with the head of the answer. An abort closes the socket at once, whatever its state. Nothing is sent
   * twice.
   */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamResponse>;
  /** Cuts what still runs and closes every connection. */
  close(): Promise<void>;
}

export function createUpstream(options: UpstreamOptions): Upstream {
  const target = readTarget(options.baseUrl);
  const route = createRoute(target, options);
  const continueTogether = createCohort(setImmediate);
  return {
    send: (request, signal) => startExchange(route, target, request, options, continueTogether, signal),
    close: () => route.destroy(),
  };
}
