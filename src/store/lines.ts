/** The lines of a file, with only one in memory at a time. `node:readline` also ends lines where JSON does not. */
import { closeSync, openSync, readSync } from "node:fs";

const pieceBytes = 256 * 1024;

export function* readLines(path: string): Generator<string> {
  const file = openSync(path, "r");
  const buffer = Buffer.alloc(pieceBytes);
  let pieces: Buffer[] = [];
  try {
    for (let size = readSync(file, buffer); size > 0; size = readSync(file, buffer)) {
      const piece = Buffer.from(buffer.subarray(0, size));
      let start = 0;
      for (let end = piece.indexOf("\n"); end >= 0; end = piece.indexOf("\n", start)) {
        yield Buffer.concat([...pieces, piece.subarray(start, end)]).toString();
        pieces = [];
        start = end + 1;
      }
      pieces.push(piece.subarray(start));
    }
    yield Buffer.concat(pieces).toString();
  } finally {
    closeSync(file);
  }
}
