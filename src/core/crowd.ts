/**
 * A set for what comes and goes all the time. A `Set` in old memory keeps all its former tables, and with them all that
 * was in them, until the next full collection.
 */
export interface Member {
  /** Where it stands; the crowd's own. */
  seat: number;
}

export class Crowd<T extends Member> implements Iterable<T> {
  private readonly all: T[] = [];

  get size(): number {
    return this.all.length;
  }

  add(member: T): void {
    member.seat = this.all.length;
    this.all.push(member);
  }

  delete(member: T): void {
    if (this.all[member.seat] !== member) return;
    const last = this.all.pop() as T;
    if (last === member) return;
    this.all[member.seat] = last;
    last.seat = member.seat;
  }

  /** All that are in it now. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.all].values();
  }
}
