/** A route that can be changed while turns are on their way: they end on the old one, and later ones take the new. */
import type { Reply } from "../adapter.ts";
import type { Route } from "./route.ts";

export interface ChangingRoute extends Route {
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
      const leave = enter(signal);
      try {
        return toldOfEnd(await route.open(turn, signal, tell), leave);
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

function toldOfEnd(reply: Reply, leave: () => void): Reply {
  const look = (batch: Awaited<ReturnType<Reply["next"]>>) => {
    if (batch === undefined) leave();
    return batch;
  };
  const fail = (thrown: unknown): never => {
    leave();
    throw thrown;
  };
  return { first: reply.first, next: () => reply.next().then(look, fail) };
}

/** A route, and how many turns are on it. */
function createUsedRoute(route: Route) {
  let turns = 0;
  let isLeft = false;
  const { promise: empty, resolve } = Promise.withResolvers<void>();

  return {
    route,
    /** What it returns is called at the turn's end, and may be called again. A turn whose caller left is over. */
    enter(signal: AbortSignal): () => void {
      let isOn = true;
      const leave = (): void => {
        signal.removeEventListener("abort", leave);
        if (isOn) turns -= 1;
        isOn = false;
        if (isLeft && turns === 0) resolve();
      };
      signal.addEventListener("abort", leave);
      turns += 1;
      return leave;
    },
    /** For one that no turn enters any more. */
    whenEmpty(): Promise<void> {
      isLeft = true;
      if (turns === 0) resolve();
      return empty;
    },
  };
}
