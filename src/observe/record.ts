/** The one record of a request, or of a turn that ended without one: all that is logged, counted and traced of it. */
import type { GatewayError } from "../core/errors.ts";
import type { Heading } from "../core/gateway.ts";
import type { Answer, Trace } from "../core/turn.ts";

/** Whoever answers fills it, and tells it once, at the end. What is not known is absent. */
export interface RequestRecord {
  /** `turn`: it ended when its caller was gone, or had never waited. `talk`: a program spoke, whose owners are any number. */
  readonly kind: "request" | "turn" | "talk";
  readonly id?: string | undefined;
  /** The client's own name for it, from the header `x-client-request-id`. */
  readonly clientId?: string | undefined;
  /** Where it stands in its caller's trace, as `begin` said. */
  readonly trace?: Trace | undefined;
  readonly method?: string | undefined;
  /** As it was asked for, without its query. */
  readonly path?: string | undefined;
  /** Its route's, with the places that it leaves open: there are few. */
  readonly route?: string | undefined;
  /** What stood in these places, or whatever else names what is read, exported or deleted; never a hint. */
  readonly objectId?: string | undefined;
  /** Nobody wants a line of it while all is well: a probe, a page's preflight, a file of the console. */
  readonly isQuiet?: boolean | undefined;
  /** 499: the caller left before the end. A stream that fails keeps the 200 that it began with. */
  readonly status?: number | undefined;
  readonly owner?: string | undefined;
  readonly address?: string | undefined;
  /** The turn's, from the moment it has one. */
  readonly key?: string | undefined;
  readonly heading?: Heading | undefined;
  /** Only where the turn's end is told for the first time: what is replayed, or goes on elsewhere, is not counted here. */
  readonly answer?: Answer | undefined;
  /** Why it failed, as a status or inside its stream. What nobody threw on purpose is its cause. */
  readonly failure?: GatewayError | undefined;
  readonly isStreamed?: boolean | undefined;
  /** From its arrival to the first word of its answer, and to the end. */
  readonly firstMs?: number | undefined;
  readonly ms: number;
}

export function failureOf({ failure, answer }: RequestRecord): GatewayError | undefined {
  return failure ?? answer?.error;
}

/** Who was asked last, and its own name for the model. */
export function askedOf(heading: Heading | undefined) {
  return heading?.remarks.findLast((remark) => remark.type === "asked");
}
