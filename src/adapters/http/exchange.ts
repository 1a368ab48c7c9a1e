/** One request and its answer: bytes wait to be pulled, a full queue pauses the socket, an abort or a deadline closes it. */
import type { Dispatcher } from "undici";
import { callerLeft, GatewayError } from "../../core/errors.ts";
import { toLateness, toNetworkFailure } from "./failure.ts";
import type { Route } from "./route.ts";
import type { Target } from "./target.ts";
import type { UpstreamOptions, UpstreamRequest, UpstreamResponse } from "./upstream.ts";
import { createWatch } from "../watch.ts";

/** Unpulled bytes above which the socket is paused. */
const maxQueuedBytes = 64 * 1024;
/** The memory a chunk takes beyond its bytes, so that a queue of tiny ones counts in full. */
const chunkBytes = 100;
/** How much an abandoned answer may still send before its connection is cut. */
const maxLeftBytes = 64 * 1024;
const leaveMs = 1000;

export function startExchange(
  route: Route,
  target: Target,
  request: UpstreamRequest,
  limits: Pick<UpstreamOptions, "connectMs" | "firstByteMs" | "idleMs">,
  continueTogether: (goOn: () => void) => void,
  signal: AbortSignal,
): Promise<UpstreamResponse> {
  if (signal.aborted) return Promise.reject(callerLeft());
  const { promise, resolve, reject } = Promise.withResolvers<UpstreamResponse>();
  let controller: Dispatcher.DispatchController | undefined;
  let arrived: Buffer[] = [];
  let queuedBytes = 0;
  let hasHead = false;
  let left = false;
  let over = false;
  let failure: GatewayError | undefined;
  let wake: (() => void) | undefined;

  const watch = createWatch(request.totalMs, (limit, limitMs) => cut(toLateness(limit, limitMs, target.address)));
  const abandon = () => cut(callerLeft());

  /** Nothing more will come. What has arrived may still be pulled. */
  function end(why: GatewayError | undefined): void {
    if (over) return;
    over = true;
    failure = why;
    watch.stop();
    signal.removeEventListener("abort", abandon);
    if (why !== undefined && !hasHead) reject(why);
    wake?.();
  }

  function cut(why: GatewayError): void {
    if (over) return;
    arrived = [];
    end(why);
    if (controller !== undefined) controller.abort(why);
    else dialled?.destroy(why);
  }

  async function pull(): Promise<readonly Buffer[] | undefined> {
    if (arrived.length === 0 && !over) await new Promise<void>((resolve) => (wake = resolve));
    if (arrived.length === 0) {
      if (failure !== undefined) throw failure;
      return undefined;
    }
    const batch = arrived;
    arrived = [];
    queuedBytes = 0;
    if (controller?.paused === true && !over) {
      watch.enter("idle", limits.idleMs);
      controller.resume();
    }
    return batch;
  }

  function leave(): void {
    if (over || left) return;
    left = true;
    arrived = [];
    queuedBytes = 0;
    watch.enter("leave", leaveMs);
    controller?.resume();
  }

  const receiver: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      controller = started;
      if (over) started.abort(failure ?? new Error("The exchange is over."));
      else watch.enter("first_byte", limits.firstByteMs);
    },
    onResponseStart(_controller, status, headers) {
      if (status < 200) return;
      hasHead = true;
      continueTogether(() => resolve({ status, headers, pull, leave }));
    },
    onResponseData(controller, chunk) {
      if (over) return;
      queuedBytes += chunk.length + chunkBytes;
      if (left) {
        if (queuedBytes > maxLeftBytes)
          cut(new GatewayError("adapter_protocol", "The answer continued after its end."));
        return;
      }
      watch.enter("idle", limits.idleMs);
      arrived.push(chunk);
      if (wake !== undefined) continueTogether(wake);
      wake = undefined;
      if (queuedBytes > maxQueuedBytes) {
        controller.pause();
        watch.rest();
      }
    },
    onResponseEnd: () => end(undefined),
    onResponseError: (_controller, error) => end(toNetworkFailure(error, target.address)),
  };

  signal.addEventListener("abort", abandon);
  const dialled = route.dispatch(
    {
      origin: target.origin,
      path: target.pathPrefix + request.path + target.search,
      method: request.method,
      headers: request.headers,
      body: request.body ?? null,
      headersTimeout: 0,
      bodyTimeout: 0,
    },
    receiver,
  );
  if (controller === undefined && !over) watch.enter("connect", limits.connectMs);
  return promise;
}
