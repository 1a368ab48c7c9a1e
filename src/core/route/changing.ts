/** A route that can be changed while turns are on their way: they end on the old one, and later ones take the new. */
import type { Route } from "./route.ts";

interface ChangingRoute extends Route {
  /** Uses another route from now on. Resolves when nobody is on the old one any more, and it is closed. */
  change(next: Route): Promise<void>;
  /** Closes every route, whoever may still be on one. */
  close(): Promise<void>;
}

/** A route, and how many turns are on it. */
interface Used {
  readonly route: Route;
  turns: number;
  onEmpty?: () => void;
}

export function createChangingRoute(first: Route): ChangingRoute {
  let current: Used = { route: first, turns: 0 };
  const all = new Set([current]);
  return {
    speaks: first.speaks,
    async open(turn, signal, tell) {
      const used = current;
      const { route } = used;
      let isOn = true;
      const leave = (): void => {
        if (isOn) used.turns -= 1;
        isOn = false;
        if (used.turns === 0) used.onEmpty?.();
      };
      used.turns += 1;
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
      current = { route: next, turns: 0 };
      all.add(current);
      if (old.turns > 0) await new Promise<void>((resolve) => (old.onEmpty = resolve));
      all.delete(old);
      await old.route.close();
    },
    async close() {
      await Promise.all(Array.from(all, ({ route }) => route.close()));
    },
  };
}
