/** Long texts that come again: an agent sends its whole history with every step, so what was made of a text is kept for the next. */

/** Shorter ones are made anew as fast. */
const minCharacters = 1_000;
/** Of texts that came lately, and as many again of those before them. */
const maxCharacters = 4_000_000;

/** What `make` gives depends on nothing but the text. */
export function remember<Made>(make: (text: string) => Made): (text: string) => Made {
  type Known = ReadonlyMap<string, { readonly text: string; readonly made: Made }>;
  let before: Known = new Map();
  let lately = new Map<string, { readonly text: string; readonly made: Made }>();
  let characters = 0;

  return (text) => {
    if (text.length < minCharacters) return make(text);
    const sample = toSample(text);
    const known = lately.get(sample);
    if (known?.text === text) return known.made;
    const older = before.get(sample);
    const entry = older?.text === text ? older : { text, made: make(text) };
    characters += text.length;
    if (characters > maxCharacters) {
      before = lately;
      lately = new Map();
      characters = text.length;
    }
    lately.set(sample, entry);
    return entry.made;
  };
}

/** To compare two texts costs a tenth of a digest; those of one sample only push each other out. */
function toSample(text: string): string {
  const third = Math.trunc(text.length / 3);
  return [0, third, 2 * third, text.length - sampleCharacters]
    .map((start) => text.slice(start, start + sampleCharacters))
    .join(`${text.length}`);
}

const sampleCharacters = 12;

const { rawJSON } = JSON as JSON & { rawJSON(text: string): unknown };
const toRaw = remember((text) => rawJSON(JSON.stringify(text)));

/** A text as it stands in JSON, for a value that is about to be written. */
export const inJson = (text: string): unknown => (text.length < minCharacters ? text : toRaw(text));
