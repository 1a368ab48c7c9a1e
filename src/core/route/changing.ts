/**
 * A route that can be changed while turns are on their way: they finish on the old one, and later turns take the new
 * one.
 */
import { closeAll } from "../closing.ts";
import type { Route } from "./route.ts";

export interface ChangingRoute extends Route {
  /** Uses another route from now on. Resolves when nobody is on the old one any more and it is closed. */
  change(next: Route): Promise<void>;
  /** Closes every route, whoever may still be on one. */
  close(): Promise<void>;
}

export function createChangingRoute(first: Route): ChangingRoute {
  let current = createRouteInUse(first);
  const routes = new Set([current]);

  function during<Result>(work: (route: Route) => Promise<Result>): Promise<Result> {
    const { route, enter } = current;
    return work(route).finally(enter());
  }

  return {
    async *stream(turn, signal, tell) {
      const { route, enter } = current;
      const leave = enter();
      try {
        yield* route.stream(turn, signal, tell);
      } finally {
        leave();
      }
    },
    contextWindow: (model) => current.route.contextWindow(model),
    speaksFor: (model) => current.route.speaksFor(model),
    countTokens: (turn, signal) => during((route) => route.countTokens(turn, signal)),
    models: () => during((route) => route.models()),
    states: () => current.route.states(),
    async change(next) {
      const old = current;
      current = createRouteInUse(next);
      routes.add(current);
      await old.empty();
      await old.close().finally(() => routes.delete(old));
    },
    close: () => closeAll(routes),
  };
}

/** A route, and who is on it. */
function createRouteInUse(route: Route) {
  const users = new Set<Promise<void>>();
  let closing: Promise<void> | undefined;
  return {
    route,
    /** The returned function must be called on leaving. */
    enter(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      users.add(promise);
      return () => {
        users.delete(promise);
        resolve();
      };
    },
    /** Resolves when nobody is on it; for one that nobody enters any more. */
    empty: () => Promise.all(users),
    close: () => (closing ??= route.close()),
  };
}
