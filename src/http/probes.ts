/** What machines ask of the gateway itself: whether it lives, whether it can take turns, and its metrics. */
import type { Route } from "./call.ts";

export interface ProbeParts {
  /** Throws if no turn can be taken now. */
  readonly check: () => Promise<void>;
  readonly adapters: () => readonly { readonly name: string; readonly state: string }[];
  readonly readMetrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

export function createProbeRoutes({ check, adapters, readMetrics }: ProbeParts): readonly Route[] {
  return [
    { method: "GET", path: "/healthz", doors: [], handle: () => ({ body: { status: "ok" } }) },
    {
      method: "GET",
      path: "/readyz",
      doors: [],
      async handle({ token }) {
        await check();
        // Their names are the operator's.
        if (!token.opens.has("operator")) return { body: { status: "ready" } };
        const states = Object.fromEntries(adapters().map(({ name, state }) => [name, state]));
        return { body: { status: "ready", adapters: states } };
      },
    },
    {
      method: "GET",
      path: "/metrics",
      doors: ["metrics", "operator"],
      async handle() {
        const { contentType, text } = await readMetrics();
        return { body: text, headers: { "content-type": contentType } };
      },
    },
  ];
}
