/** The terms for requests. They may change while the door is open; a request keeps those it arrived under. */
import type { Gateway } from "../core/gateway.ts";
import type { Protocol } from "../core/ports.ts";
import type { ResponsesProtocol } from "../protocols/responses/index.ts";
import { type AddressOf, createAddressOf } from "./address.ts";
import type { Arrivals } from "./arrivals.ts";
import type { Beginnings } from "./beginnings.ts";
import type { Admit } from "./auth.ts";
import type { Holdings } from "./held.ts";
import type { Journal } from "./journal.ts";
import type { Operator } from "./operator.ts";
import type { TakeRequest } from "./rate.ts";
import type { HttpSettings } from "./settings.ts";
import type { Turns } from "./turns.ts";

declare module "fastify" {
  interface FastifyRequest {
    terms: Terms;
  }
}

/** What the operator decides. */
export interface Decisions {
  readonly settings: HttpSettings;
  readonly protocols: { readonly chat: Protocol; readonly responses: ResponsesProtocol };
}

export interface Terms extends HttpSettings, Omit<Decisions, "settings">, SharedParts {
  readonly addressOf: AddressOf;
}

/** What outlasts a change of terms: all that runs, and the counts of callers. */
export interface SharedParts {
  readonly gateway: Gateway;
  readonly operator: Operator;
  readonly turns: Turns;
  readonly arrivals: Arrivals;
  /** The memory of requests in progress and of unread answers. */
  readonly held: Holdings;
  /** What WebSocket connections remember. */
  readonly remembered: Holdings;
  /** What earlier requests began with, in case it is resent. */
  readonly beginnings: Beginnings;
  readonly journal: Journal;
  readonly now: () => Date;
  /** Counts on steadily, however the clock is set. */
  readonly elapsedMs: () => number;
  readonly newTurnId: () => string;
  readonly admit: Admit;
  readonly takeRequest: TakeRequest;
}

export function toTerms({ settings, protocols }: Decisions, lasting: SharedParts): Terms {
  return { ...lasting, ...settings, protocols, addressOf: createAddressOf(settings) };
}
