/** The terms for requests. They may change while the door is open; a request keeps those it arrived under. */
import type { Protocol } from "../core/ports.ts";
import type { ResponsesProtocol } from "../protocols/responses/index.ts";
import { type AddressOf, createAddressOf } from "./address.ts";
import { createArrivals } from "./arrivals.ts";
import { createAdmit } from "./auth.ts";
import { createBeginnings } from "./beginnings.ts";
import type { DoorParts } from "./door.ts";
import { createHoldings } from "./held.ts";
import { createJournal } from "./journal.ts";
import { createTakeRequest } from "./rate.ts";
import type { HttpLimits, HttpSettings } from "./settings.ts";
import { createTurns } from "./turns.ts";

/** What the operator decides. */
export interface Decisions {
  readonly settings: HttpSettings;
  readonly protocols: { readonly chat: Protocol; readonly responses: ResponsesProtocol };
}

export interface Terms extends HttpSettings, Omit<Decisions, "settings">, Lasting {
  readonly addressOf: AddressOf;
}

export type Lasting = ReturnType<typeof createLasting>;

/** Creates what outlasts a change of terms: all that runs, and the counts of callers. */
export function createLasting(parts: DoorParts, limits: () => HttpLimits) {
  const { gateway, operator, now, elapsedMs = () => +now(), newId, log, metrics, tracer } = parts;
  /** The memory of requests in progress and of unread answers. */
  const held = createHoldings(() => limits().maxHeldBytes, "Requests in progress and unread answers");
  /** Connections may remember a quarter of what requests may hold: clients resend what is forgotten. */
  const remembered = createHoldings(() => limits().maxHeldBytes / 4, "What WebSocket connections remember");
  /** A sixteenth may be taken by what earlier requests began with, in case it is resent. */
  const beginnings = createBeginnings(() => limits().maxHeldBytes / 16);
  return {
    gateway,
    operator,
    turns: createTurns(() => limits().maxConcurrentTurns, held),
    arrivals: createArrivals(() => limits().maxArrivingBytes),
    held,
    remembered,
    beginnings,
    journal: createJournal(log, metrics, tracer),
    now,
    elapsedMs,
    newTurnId: () => newId("resp"),
    admit: createAdmit(now),
    takeRequest: createTakeRequest(now),
  } as const;
}

export function toTerms({ settings, protocols }: Decisions, lasting: Lasting): Terms {
  return { ...lasting, ...settings, protocols, addressOf: createAddressOf(settings) };
}
