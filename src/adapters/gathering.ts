/** Joins pieces of bytes; tiny ones share a buffer, as a list of them would take a hundred times their size. */

export interface Gathering {
  /** In bytes. */
  size(): number;
  add(piece: Buffer): void;
  /** Everything so far, followed by `last`; gathering then starts over. */
  take(last?: Buffer): Buffer;
}

/** Larger pieces have their own place in the list. */
const tinyBytes = 1024;
const roomBytes = 4 * tinyBytes;
const nothing = Buffer.alloc(0);

export function createGathering(): Gathering {
  let pieces: Buffer[] = [];
  let size = 0;
  let room: Buffer = nothing;
  let filled = 0;

  /** Adds the tiny pieces so far to the list. */
  function settle(): void {
    if (filled === 0) return;
    pieces.push(room.subarray(0, filled));
    room = room.subarray(filled);
    filled = 0;
  }

  return {
    size: () => size,
    add(piece) {
      size += piece.length;
      // The first is often the only one, so it is not copied.
      if (piece.length > tinyBytes || pieces.length === 0) {
        settle();
        pieces.push(piece);
        return;
      }
      if (filled + piece.length > room.length) {
        settle();
        room = Buffer.allocUnsafe(roomBytes);
      }
      piece.copy(room, filled);
      filled += piece.length;
    },
    take(last = nothing) {
      settle();
      if (last.length > 0) pieces.push(last);
      const whole = pieces.length > 1 ? Buffer.concat(pieces) : (pieces[0] ?? nothing);
      pieces = [];
      room = nothing;
      size = 0;
      return whole;
    },
  };
}
