/** A route that can be changed while turns are on their way: they end on the old one, and later ones take the new. */
import type { Route } from "./route.ts";

interface ChangingRoute extends Route {
  /** Uses another route from now on. Resolves when nobody is on the old one any more, and it is closed. */
  change(next: Route): Promise<void>;
  /** Closes every route, whoever may still be on one. */
  close(): Promise<void>;
}

export function createChangingRoute(first: Route): ChangingRoute {
  let current = createUsedRoute(first);
  const all = new Set([current]);
  return {
    speaks: first.speaks,
    async open(turn, signal, tell) {
      const { route, enter } = current;
      const leave = enter();
      try {
        const reply = await route.open(turn, signal, tell);
        return {
          first: reply.first,
          next: () => reply.next(),
          close(answer) {
            leave();
            reply.close?.(answer);
          },
        };
      } catch (thrown) {
        leave();
        throw thrown;
      }
    },
    countTokens: (turn, signal) => current.route.countTokens(turn, signal),
    models: () => current.route.models(),
    states: () => current.route.states(),
    async change(next) {
      const old = current;
      current = createUsedRoute(next);
      all.add(current);
      await old.whenEmpty();
      all.delete(old);
      await old.route.close();
    },
    async close() {
      await Promise.all(Array.from(all, ({ route }) => route.close()));
    },
  };
}

/** A route, and how many turns are on it. */
function createUsedRoute(route: Route) {
  let turns = 0;
  let onEmpty: (() => void) | undefined;
  return {
    route,
    /** What it returns may be called again. */
    enter(): () => void {
      let isOn = true;
      turns += 1;
      return () => {
        if (isOn) turns -= 1;
        isOn = false;
        if (turns === 0) onEmpty?.();
      };
    },
    whenEmpty: () => new Promise<void>((resolve) => (turns === 0 ? resolve() : (onEmpty = resolve))),
  };
}
