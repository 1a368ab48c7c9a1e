/** Every request from its arrival to its end: what it takes is given back then, and it is told once. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { callerLeft, type GatewayError } from "../core/errors.ts";
import type { Trace } from "../core/turn.ts";
import { nobody, type Terms } from "./admission.ts";
import type { Call } from "./call.ts";
import { toPath } from "./router.ts";
import type { Share, Shares } from "./shares.ts";
import type { Streams } from "./stream.ts";
import { type Told, toTold } from "./told.ts";

export interface RequestParts {
  readonly streams: Streams;
  readonly now: () => number;
  readonly newId: () => string;
  /** Its place in its caller's trace. */
  readonly begin: (headers: IncomingHttpHeaders) => Trace | undefined;
  /** Told of each, once, when it is over. */
  readonly ended: (told: Told) => void;
}

type Again = (call: Call) => Pick<Call, "token" | "settings">;

export function createRequests(parts: RequestParts, shares: Shares, again: Again) {
  const { streams, now, newId, begin, ended } = parts;
  const stops = new Map<Call, (reason: GatewayError) => void>();

  function open(request: IncomingMessage, response: ServerResponse, terms: Terms, head?: Buffer) {
    const { settings, addressOf } = terms;
    let control: AbortController | undefined;
    let stopped: GatewayError | undefined;
    let share: Share | undefined;
    let closedAt: number | undefined;
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
        if (stopped !== undefined) control.abort(stopped);
        return control.signal;
      },
      get share() {
        return (share ??= shares.open(call.token, settings.limits.maxConcurrentTurns));
      },
      readmit() {
        const { token, settings } = again(call);
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

    function stop(reason: GatewayError): void {
      stopped ??= reason;
      control?.abort(stopped);
    }
    function end(): void {
      if (closedAt === undefined || !isThrough) return;
      share?.release();
      stops.delete(call);
      ended(toTold(call, closedAt));
    }

    stops.set(call, stop);
    response.on("error", ignore);
    response.once("close", () => {
      closedAt = now();
      if (!response.writableFinished && !record.isUpgraded) stop((record.failure ??= callerLeft()));
      end();
    });
    return {
      call,
      /** Its handler is through; its answer may not have been read. */
      through(): void {
        isThrough = true;
        share?.leave();
        const unread = response.closed ? 0 : response.writableLength;
        if (unread > uncountedBytes(response)) call.share.addBytes(unread);
        if (unread > 0 && !record.isStreamed) streams.watch(response);
        end();
      },
    };
  }

  return {
    open,
    stopAll(reason: GatewayError): void {
      for (const stop of stops.values()) stop(reason);
    },
    /** With the connections that they have become. */
    cutAll(): void {
      for (const { request } of stops.keys()) request.socket.destroy();
    },
  };
}

function ignore(): void {}

/** The system takes so much of an answer at once, unless it waits for earlier ones on its connection. */
export function uncountedBytes({ socket }: ServerResponse): number {
  return socket === null ? 1_024 : 64 * 1_024;
}
