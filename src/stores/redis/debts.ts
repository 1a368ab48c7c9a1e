/** Retries what Redis could not be asked to do, or did not confirm, until it confirms it. */
export interface Debts {
  /** One per name; it may have been done already. Resolves after the first attempt, whatever its result. */
  add(name: string, ask: () => Promise<unknown>): Promise<void>;
  /** Retries everything that is open. */
  settle(): void;
}

export function createDebts(): Debts {
  const open = new Map<string, () => Promise<unknown>>();

  async function settle(name: string, ask: () => Promise<unknown>): Promise<void> {
    await ask();
    open.delete(name);
  }

  return {
    add(name, ask) {
      open.set(name, ask);
      return settle(name, ask).catch(() => {});
    },
    settle() {
      for (const [name, ask] of open) settle(name, ask).catch(() => {});
    },
  };
}
