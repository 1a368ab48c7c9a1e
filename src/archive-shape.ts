/** Looks through a JSON text before it is parsed: a few bytes can be a whole object, and what is nested deeply breaks whoever writes it out. */

/** What is wrong with how the text is built; nothing: it may be parsed. Whether it is JSON is found out then. */
export function findBadShape(text: string): string | undefined {
  let depth = 0;
  let containers = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === quote) at = findEndOfString(text, at);
    else if (character === openList || character === openObject) {
      if (++depth > maxDepth) return `is nested deeper than ${maxDepth} levels`;
      if (++containers > maxContainers) return `has more than ${maxContainers} objects and lists in it`;
    } else if (character === closeList || character === closeObject) depth--;
  }
  return undefined;
}

/** Bodies are nested by 64 levels unless the operator allows more, and a text of three thousand is written out by no store. */
const maxDepth = 1_000;
/** Each takes about a hundred bytes of memory. A request has a million at most, and an answer few beside its log probabilities. */
const maxContainers = 4_000_000;

const quote = 0x22;
const backslash = 0x5c;
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** From quote to quote, because looking for one is many times faster than looking at each character. */
function findEndOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at;
    while (text.charCodeAt(before - 1) === backslash) before--;
    if ((at - before) % 2 === 0) return at;
  }
  return text.length;
}
