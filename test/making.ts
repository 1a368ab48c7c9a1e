/** Gateways for tests without HTTP, with the parts they care about and defaults for the rest. */
import { hash } from "node:crypto";
import { createGateway, type Gateway, type GatewayLimits, type GatewayParts } from "../src/core/gateway.ts";
import { createIds } from "../src/ids.ts";

export const usualLimits: GatewayLimits = {
  maxItems: 4096,
  maxTools: 4096,
  maxReferencedCharacters: 1024 * 1024,
  maxQueuedPerThread: 16,
  maxTurnsPerThread: 100_000,
  maxCharactersPerThread: 64 * 1024 * 1024,
  maxEvents: 100_000,
  maxCharacters: 16 * 1024 * 1024,
  maxRunning: 1000,
  maxUnattendedMs: 3_600_000,
  keyMs: 24 * 3_600_000,
  maxRememberedCharacters: 1024 * 1024,
};

type Chosen = Pick<GatewayParts, "adapter" | "store"> &
  Partial<Omit<GatewayParts, "limits" | "alwaysResends">> & {
    readonly limits?: Partial<GatewayLimits>;
    readonly alwaysResends?: boolean;
  };

export function makeGateway({ limits: wanted, alwaysResends = false, ...chosen }: Chosen): Gateway {
  const now = chosen.now ?? (() => new Date());
  const newId = createIds(() => new Date());
  const limits = { ...usualLimits, ...wanted };
  return createGateway({
    now,
    newSessionId: () => newId("conv"),
    digest: (text) => hash("sha256", text, "base64url").slice(0, 22),
    // One token per character, so that tests can count.
    tokenCounter: async () => (text) => text.length,
    ...chosen,
    limits: () => limits,
    alwaysResends: () => alwaysResends,
  });
}
