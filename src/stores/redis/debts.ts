/** What Redis could not be asked to do, or did not say whether it has: asked for again until it says so. */
export interface Debts {
  /** Each name has one; what is asked for may have been done already. Resolves when it was asked for once, whatever came of it. */
  add(name: string, ask: () => Promise<unknown>): Promise<void>;
  /** Asks for everything that is open. */
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
