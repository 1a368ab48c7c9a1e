/** Which name a model goes by: the caller's, that of whoever answers to it, and the adapter's own. */

export interface ModelNames {
  /** The adapter's name for what the caller asked for. */
  resolve(asked: string): string;
  /** The names a caller may choose from, as far as the operator has said. */
  readonly known: readonly string[];
}

/** A mapped name is forwarded as mapped; any other as the adapter's one configured model, or as it is when there is none. */
export function createModelNames(configured: {
  readonly model?: string | undefined;
  readonly models?: Readonly<Record<string, string>> | undefined;
}): ModelNames {
  const mapped = new Map(Object.entries(configured.models ?? {}));
  const known = new Set(mapped.keys());
  if (configured.model !== undefined) known.add(configured.model);
  return {
    resolve: (asked) => mapped.get(asked) ?? configured.model ?? asked,
    known: [...known],
  };
}

/** Not only the beginning of names. */
export function isWholeName(name: string): boolean {
  return !name.endsWith("*");
}

/** Looks a name up among whole names and beginnings (`gpt-*`): the whole name wins, then the longest beginning. */
export function createModelTable(entries: Readonly<Record<string, string>>): (asked: string) => string | undefined {
  const whole = new Map<string, string>();
  const beginnings: (readonly [beginning: string, value: string])[] = [];
  for (const [name, value] of Object.entries(entries)) {
    if (isWholeName(name)) whole.set(name, value);
    else beginnings.push([name.slice(0, -1), value]);
  }
  beginnings.sort(([one], [other]) => other.length - one.length);
  return (asked) => whole.get(asked) ?? beginnings.find(([beginning]) => asked.startsWith(beginning))?.[1];
}
