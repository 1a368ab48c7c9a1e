/** Which name a model goes by: the caller's, the operator's, and the adapter's own. */

export interface ModelNames {
  /** The adapter's name for the requested model. */
  resolve(asked: string): string;
  /** The names a caller may choose from, as far as configured. */
  readonly known: readonly string[];
}

/**
 * A mapped name is forwarded as mapped; any other as the adapter's one configured model, or unchanged if there is none.
 */
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

/** Models by whole names and prefixes (`gpt-*`). */
export interface ModelSet {
  /** As the operator wrote them. */
  readonly names: readonly string[];
  has(asked: string): boolean;
}

export function createModelSet(names: readonly string[]): ModelSet {
  const find = createModelTable(names.map((name) => [name, true]));
  return { names, has: (asked) => find(asked) === true };
}

/** Not merely a prefix. */
export function isWholeName(name: string): boolean {
  return !name.endsWith("*");
}

/** Looks a name up among whole names and prefixes (`gpt-*`): the whole name wins, then the longest prefix. */
export function createModelTable<Value>(
  entries: readonly (readonly [name: string, value: Value])[],
): (asked: string) => Value | undefined {
  const whole = new Map<string, Value>();
  const beginnings: (readonly [beginning: string, value: Value])[] = [];
  for (const [name, value] of entries) {
    if (isWholeName(name)) whole.set(name, value);
    else beginnings.push([name.slice(0, -1), value]);
  }
  beginnings.sort(([one], [other]) => other.length - one.length);
  return (asked) => whole.get(asked) ?? beginnings.find(([beginning]) => asked.startsWith(beginning))?.[1];
}
