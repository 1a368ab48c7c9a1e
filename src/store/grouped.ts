/** What arrives in one tick of the event loop travels together; while one group is on its way the next gathers. */

export interface Grouped<Given, Result> {
  send(given: Given): Promise<Result>;
  /** Resolves when nothing is on its way. */
  idle(): Promise<void>;
}

/** `run` gives a result or an error for each, in order. */
export function createGrouped<Given, Result>(
  run: (group: readonly Given[]) => Promise<readonly (Result | Error)[]>,
): Grouped<Given, Result> {
  interface Waiting {
    readonly given: Given;
    resolve(result: Result): void;
    reject(error: unknown): void;
  }
  let waiting: Waiting[] = [];
  let running: Promise<void> | undefined;

  async function go(): Promise<void> {
    await nextTick();
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      try {
        const results = await run(group.map(({ given }) => given));
        for (const [index, one] of group.entries()) {
          const result = results[index] as Result | Error;
          if (result instanceof Error) one.reject(result);
          else one.resolve(result);
        }
      } catch (error) {
        for (const one of group) one.reject(error);
      }
    }
    running = undefined;
  }

  return {
    send: (given) =>
      new Promise((resolve, reject) => {
        waiting.push({ given, resolve, reject });
        running ??= go();
      }),
    idle: async () => running,
  };
}

const nextTick = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
