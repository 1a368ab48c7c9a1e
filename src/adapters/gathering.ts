/** Puts the pieces together that something arrives in. A list of tiny ones would be a hundred times as large as it looks, so those share their room. */

export interface Gathering {
  /** In bytes. */
  size(): number;
  add(piece: Buffer): void;
  /** All of it, and the last piece behind it; what is gathered next begins anew. */
  take(last?: Buffer): Buffer;
}

/** What is larger is worth a place of its own in the list. */
const tinyBytes = 1024;
const roomBytes = 4 * tinyBytes;
const nothing = Buffer.alloc(0);

export function createGathering(): Gathering {
  let pieces: Buffer[] = [];
  let size = 0;
  let room: Buffer = nothing;
  let filled = 0;

  /** The tiny pieces so far are one of the list. */
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
      // Most often it is the only one, which is left as it is.
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
