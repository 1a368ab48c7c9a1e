/** Retries what Redis could not be asked to do, or did not confirm, until it confirms it. */
export interface Retries {
  /** One per name; it may have been done already. Resolves after the first attempt, whatever its result. */
  add(name: string, ask: () => Promise<unknown>): Promise<void>;
  /** Retries everything that is open. */
  retryAll(): void;
}

export function createRetries(): Retries {
  const open = new Map<string, () => Promise<unknown>>();

  async function attempt(name: string, ask: () => Promise<unknown>): Promise<void> {
    await ask();
    open.delete(name);
  }

  return {
    add(name, ask) {
      open.set(name, ask);
      return attempt(name, ask).catch(() => {});
    },
    retryAll() {
      for (const [name, ask] of open) attempt(name, ask).catch(() => {});
    },
  };
}
