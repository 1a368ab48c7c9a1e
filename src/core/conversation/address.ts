/** Where an item is: derived from the turn it belongs to, so that its id alone leads back to it. */

export interface Address {
  readonly turnId: string;
  readonly side: "input" | "output";
  readonly index: number;
}

/** The suffix of a turn that holds a history a caller brought along. */
export const shownSuffix = "_shown";

/** The part of an item's id after its kind: the turn's own digits, then the side and the position. */
export function toAddress({ turnId, side, index }: Address): string {
  const isShown = turnId.endsWith(shownSuffix);
  const digits = turnId.slice(turnId.indexOf("_") + 1, isShown ? -shownSuffix.length : undefined);
  const place = index.toString(16).padStart(4, "0");
  return `${digits}${isShown ? "s" : side === "input" ? "i" : ""}${place}`;
}

const address = /_([0-9a-f]{48})([is]?)([0-9a-f]{4,8})$/;

/** The address in an item's id; undefined for an id that was not made here. */
export function readAddress(itemId: string): Address | undefined {
  const [, digits, mark, place] = address.exec(itemId) ?? [];
  if (digits === undefined || place === undefined) return undefined;
  const index = Number.parseInt(place, 16);
  if (mark === "s") return { turnId: `resp_${digits}${shownSuffix}`, side: "input", index };
  return { turnId: `resp_${digits}`, side: mark === "i" ? "input" : "output", index };
}
