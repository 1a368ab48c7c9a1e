/** What gateways that share a store publish to each other. A store that belongs to one gateway has no peers. */
import type { Event, Events } from "./event.ts";

export interface Peers {
  /**
   * Waits in line until no gateway holds this name, and holds it until the returned function is called, which may be
   * called again; `stands` is called as soon as any later caller has to wait. Those who hold the name `behind`, or wait
   * for it, go first. A gateway that dies loses its names after a moment; so may one that sleeps for long. No turn
   * therefore relies on its name alone: the store accepts it only at its place.
   */
  enter(name: string, signal: AbortSignal, stands?: () => void, behind?: string): Promise<() => void>;
  /** Whether a gateway has this name now. */
  isTaken(name: string): Promise<boolean>;
  /**
   * Publishes under a name that this gateway holds. The others may miss it: what the store holds in the end counts.
   */
  publish(name: string, events: readonly Event[]): void;
  /** What was and is told under the name, from the beginning until the name is free; nothing after a gap. */
  subscribe(name: string, signal: AbortSignal): Events;
  /** Asks for a turn to be cancelled, and waits until its name is free, but not for long: its gateway may be gone. */
  cancel(name: string, turnId: string): Promise<void>;
  /**
   * Tells the others what running turns here continue, so that none of them prunes it: all of it now and then, and soon
   * after the returned function is called. Ids that are no longer in use are forgotten a moment later.
   */
  shareUse(inUse: () => ReadonlySet<string>): () => void;
  /** Reports the turns that others want cancelled. */
  onCancel(listener: (turnId: string) => void): void;
}

/** The name held by the gateway that runs a turn. */
export function nameOfRun(turnId: string): string {
  return `run ${turnId}`;
}
