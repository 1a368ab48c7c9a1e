/** The forms of the config file's values, as plain data: from them come checks, defaults, masks, the schema and the docs. */

export type Form = Text | Choice | Integer | Flag | List | Names | Section | Kinds | Anything;
export type Keys = Readonly<Record<string, Form>>;

interface Common {
  readonly meaning: string;
  readonly isRequired?: true;
}

export interface Text extends Common {
  readonly type: "text";
  readonly default?: string;
  readonly isSecret?: true;
  /** It may be a URL with a password in it. */
  readonly hasPassword?: true;
  /** It is a path, relative to the file's folder, behind these words. */
  readonly pathBehind?: string;
  readonly judge?: Judge;
}

/** What is wrong with a text or allowed instead, without repeating it; undefined if it is right. */
export type Judge = (text: string) => string | undefined;

export interface Choice extends Common {
  readonly type: "choice";
  readonly choices: readonly string[];
  readonly default?: string;
}

export interface Integer extends Common {
  readonly type: "integer";
  readonly minimum: number;
  readonly maximum: number;
  readonly default?: number;
  /** Says more than the bounds. */
  readonly allowed?: string;
}

export interface Flag extends Common {
  readonly type: "flag";
  readonly default: boolean;
}

export interface List extends Common {
  readonly type: "list";
  readonly each: Form;
  readonly default?: readonly string[];
  readonly isFilled?: true;
}

/** Values of one form under names that the operator chooses. */
export interface Names extends Common {
  readonly type: "names";
  readonly each: Form;
  readonly default?: Readonly<Record<string, never>>;
  readonly judgeName?: Judge;
}

/** Keys that belong together; no others are allowed. */
export interface Section extends Common {
  readonly type: "section";
  readonly keys: Keys;
}

/** A section whose `type` says which keys it has beside the common ones. */
export interface Kinds extends Common {
  readonly type: "kinds";
  readonly common: Keys;
  readonly kinds: Readonly<Record<string, Keys>>;
}

/** What somebody else reads; as a secret it is masked as a whole, and may hold references to files. */
export interface Anything extends Common {
  readonly type: "anything";
  readonly isSecret?: true;
}

export function text<const More extends Omit<Partial<Text>, "type">>(meaning: string, more?: More) {
  return { type: "text", meaning, ...(more as More) } as const;
}

export function choice<const Choices extends readonly string[], const More extends { readonly default?: string }>(
  choices: Choices,
  meaning: string,
  more?: More,
) {
  return { type: "choice", choices, meaning, ...(more as More) } as const;
}

/** The upper limit of a timer. */
const largest = 2_147_483_647;

/** A number of things, or of milliseconds. */
export function integer(value: number, meaning: string, minimum = 1, maximum = largest) {
  return { type: "integer", minimum, maximum, default: value, meaning } as const;
}

export function optionalInteger(meaning: string) {
  return { type: "integer", minimum: 1, maximum: largest, meaning } as const;
}

export function flag(value: boolean, meaning: string) {
  return { type: "flag", default: value, meaning } as const;
}

export function list<const Each extends Form>(each: Each, meaning: string, value: readonly string[] = []) {
  return { type: "list", each, default: value, meaning } as const;
}

export function names<const Each extends Form>(each: Each, meaning: string, judgeName?: Judge) {
  return { type: "names", each, default: {}, meaning, ...(judgeName && { judgeName }) } as const;
}

export function section<const Own extends Keys>(meaning: string, keys: Own) {
  return { type: "section", keys, meaning } as const;
}

/** The section that values of a kind are; undefined for a kind that there is not. */
export function toKindSection({ common, kinds, meaning }: Kinds, kind: unknown): Section | undefined {
  const own = typeof kind === "string" && Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (own === undefined) return undefined;
  const type = { ...choice([String(kind)], "The kind of adapter."), isRequired: true } as const;
  return section(meaning, { type, ...common, ...own });
}

/** A complete value of a form. */
export type Value<Of> = Of extends { readonly type: "text" }
  ? string
  : Of extends { readonly type: "choice"; readonly choices: readonly (infer Each)[] }
    ? Each
    : Of extends { readonly type: "integer" }
      ? number
      : Of extends { readonly type: "flag" }
        ? boolean
        : Of extends { readonly type: "list"; readonly each: infer Each }
          ? readonly Value<Each>[]
          : Of extends { readonly type: "names"; readonly each: infer Each }
            ? Readonly<Record<string, Value<Each>>>
            : Of extends { readonly type: "section"; readonly keys: infer Own }
              ? Complete<Own>
              : unknown;

/** With all defaults filled in. */
export type Complete<Own> = {
  readonly [Key in keyof Own]: Own[Key] extends { readonly default: unknown } | { readonly isRequired: true } | Section
    ? Value<Own[Key]>
    : Value<Own[Key]> | undefined;
};
