/** What gateways that work on one store at the same time tell each other. A store that a gateway has for itself has none. */
import type { Event, Events } from "./event.ts";

export interface Neighbours {
  /**
   * Waits until no gateway has this name, each in its turn, and has it until the function is called; `stands` is called as soon as
   * whoever comes later has to wait. Those who have the name `behind`, or wait for it, go first. A gateway that dies loses its names
   * after a moment; so may one that sleeps for long, which is why no turn is safe by its name alone: the store keeps it only at its place.
   */
  enter(name: string, signal: AbortSignal, stands?: () => void, behind?: string): Promise<() => void>;
  /** Whether a gateway has this name now. */
  isTaken(name: string): Promise<boolean>;
  /** Tells the others, under a name that this gateway has. They may miss it: what counts is what the store keeps in the end. */
  tell(name: string, events: readonly Event[]): void;
  /** What was told under the name, from its beginning on, and what is told, until it is free; nothing behind what was missed. */
  hear(name: string, signal: AbortSignal): Events;
  /** Asks for a turn to be called off, and waits until its name is free, but not for long: its gateway may be gone. */
  callOff(name: string, turnId: string): Promise<void>;
  /** Hears of the turns that others want called off. */
  onCalledOff(listener: (turnId: string) => void): void;
}

/** What a gateway is known by as the one that runs a turn. */
export function nameOfRun(turnId: string): string {
  return `run ${turnId}`;
}
