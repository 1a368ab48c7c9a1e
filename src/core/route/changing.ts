/** A route that can be changed while turns are on their way: they end on the old one, and later ones take the new. */
import type { Route } from "./route.ts";

interface ChangingRoute extends Route {
  /** Uses another route from now on. Resolves when nobody is on the old one any more, and it is closed. */
  change(next: Route): Promise<void>;
  /** Closes every route, whoever may still be on one. */
  close(): Promise<void>;
}

/** A route, and how each turn leaves it that is on it. */
interface Used {
  readonly route: Route;
  readonly turns: Set<() => void>;
  onEmpty?: () => void;
}

export function createChangingRoute(first: Route): ChangingRoute {
  let current: Used = { route: first, turns: new Set() };
  const all = new Set([current]);
  return {
    speaks: first.speaks,
    async open(turn, signal, tell) {
      const used = current;
      const { route, turns } = used;
      const leave = (): void => {
        turns.delete(leave);
        if (turns.size === 0) used.onEmpty?.();
      };
      turns.add(leave);
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
      current = { route: next, turns: new Set() };
      all.add(current);
      if (old.turns.size > 0) await new Promise<void>((resolve) => (old.onEmpty = resolve));
      all.delete(old);
      await old.route.close();
    },
    async close() {
      await Promise.all(Array.from(all, ({ route }) => route.close()));
    },
  };
}
