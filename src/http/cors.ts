/** Which pages may ask from a browser, and what they may read of the answers. */
import type { FastifyCorsOptions } from "@fastify/cors";
import type { FastifyRequest } from "fastify";

/** The endpoints are for the pages that the operator has named, the operator's routes for none. */
export function sayCors(
  { terms, routeOptions: { url } }: FastifyRequest,
  done: (error: null, options: FastifyCorsOptions) => void,
): void {
  const { corsOrigins } = terms.settings;
  if (corsOrigins.length === 0 || url?.startsWith("/operator/") === true) return done(null, { origin: false });
  done(null, {
    origin: [...corsOrigins],
    methods: ["GET", "POST", "DELETE"],
    exposedHeaders: [...exposedHeaders],
    maxAge: 600,
    strictPreflight: false,
  });
}

const exposedHeaders = [
  "x-request-id",
  "retry-after",
  "x-portico-session",
  "x-portico-history",
  "x-portico-context",
  "x-portico-replayed",
  "x-portico-tried",
  "x-portico-warning",
  "x-portico-tokens",
] as const;
