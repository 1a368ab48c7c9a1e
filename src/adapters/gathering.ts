/** Joins pieces of bytes in a buffer that grows, as a list of tiny ones would take a hundred times their size. */

export interface Gathering {
  /** In bytes. */
  size(): number;
  add(piece: Buffer): void;
  /** Everything so far; gathering then starts over. */
  take(): Buffer;
}

const nothing = Buffer.alloc(0);

export function createGathering(): Gathering {
  let room: Buffer = nothing;
  let size = 0;
  return {
    size: () => size,
    add(piece) {
      const end = size + piece.length;
      // The first is often the only one, so it is not copied.
      if (size === 0) room = piece;
      else {
        if (end > room.length) {
          const larger = Buffer.allocUnsafe(Math.max(end, 2 * room.length));
          room.copy(larger, 0, 0, size);
          room = larger;
        }
        piece.copy(room, size);
      }
      size = end;
    },
    take() {
      const whole = size === room.length ? room : room.subarray(0, size);
      room = nothing;
      size = 0;
      return whole;
    },
  };
}
