/** What Redis could not be asked to do with a turn, or did not say whether it has: asked for again until it says so. */
export interface Debts {
  /** Each turn has one; what is asked for may have been done already. */
  add(turnId: string, ask: () => Promise<unknown>): void;
  /** Asks for everything that is open. */
  settle(): void;
}

export function createDebts(): Debts {
  const open = new Map<string, () => Promise<unknown>>();

  async function settle(turnId: string, ask: () => Promise<unknown>): Promise<void> {
    await ask();
    open.delete(turnId);
  }

  return {
    add(turnId, ask) {
      open.set(turnId, ask);
      settle(turnId, ask).catch(() => {});
    },
    settle() {
      for (const [turnId, ask] of open) settle(turnId, ask).catch(() => {});
    },
  };
}
