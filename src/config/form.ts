/** The forms of the config file's values: JSON Schema for editors, and beside it what only Portico makes of them. */

export interface Form {
  /** A secret is a text, or an object that names its file. Absent: anything, which somebody else reads. */
  readonly type?: "string" | "integer" | "boolean" | "array" | "object" | readonly ["string", "object"];
  readonly description: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Form;
  readonly minItems?: number;
  readonly properties?: Keys;
  readonly required?: readonly string[];
  readonly additionalProperties?: Form | false;
  /** Sections, each of which is for one `type`. */
  readonly anyOf?: readonly Form[];

  readonly isSecret?: true;
  /** A relative path stands behind these words. */
  readonly pathBehind?: string;
  readonly judge?: Judge | undefined;
}

export type Keys = Readonly<Record<string, Form>>;

/** What is wrong with a value or allowed instead, without repeating it; undefined if it is right. */
export type Judge = (text: string) => string | undefined;

/** A default, or none. */
type Usual<Of> = Of | undefined;

export function text<const Default extends Usual<string>>(judge: Usual<Judge>, description: string, usual?: Default) {
  return { type: "string", judge, default: usual as Default, description } as const;
}

const file = { type: "string", description: "The file that holds the secret." } as const;

export function secret(judge: Usual<Judge>, description: string) {
  const reference = { properties: { file }, required: ["file"], additionalProperties: false } as const;
  return { type: ["string", "object"], isSecret: true, judge, ...reference, description } as const;
}

export function choice<const Words extends readonly string[], const Default extends Usual<string>>(
  words: Words,
  description: string,
  usual?: Default,
) {
  return { type: "string", enum: words, default: usual as Default, description } as const;
}

/** The upper limit of a timer. */
const largest = 2_147_483_647;

/** A number of things, or of milliseconds. */
export function integer<const Default extends Usual<number>>(
  usual: Default,
  description: string,
  minimum = 1,
  maximum = largest,
) {
  return { type: "integer", minimum, maximum, default: usual, description } as const;
}

export function flag(usual: boolean, description: string) {
  return { type: "boolean", default: usual, description } as const;
}

export function list<const Each extends Form>(items: Each, description: string, usual: readonly string[] = []) {
  return { type: "array", items, default: usual, description } as const;
}

/** It is not empty: that would not mean what an absent one does. */
export function someOf<const Each extends Form>(items: Each, description: string) {
  return { type: "array", items, minItems: 1, description } as const;
}

/** Values of one form under names that the operator chooses. */
export function names<const Each extends Form>(each: Each, description: string) {
  return { type: "object", additionalProperties: each, default: {}, description } as const;
}

/** Keys that belong together; no others are allowed. */
export function section<const Own extends Keys>(description: string, properties: Own, required: string[] = []) {
  return { type: "object", properties, additionalProperties: false, required, default: {}, description } as const;
}

/** The complete value of a form. */
export type Value<Of> = Of extends { readonly enum: readonly (infer Word)[] }
  ? Word
  : Of extends { readonly type: "string" | readonly ["string", "object"] }
    ? string
    : Of extends { readonly type: "integer" }
      ? number
      : Of extends { readonly type: "boolean" }
        ? boolean
        : Of extends { readonly items: infer Each }
          ? readonly Value<Each>[]
          : Of extends { readonly additionalProperties: infer Each extends Form }
            ? Readonly<Record<string, Value<Each>>>
            : Of extends { readonly properties: infer Own }
              ? Complete<Own>
              : unknown;

/** With all defaults filled in. */
export type Complete<Own> = {
  readonly [Key in keyof Own]: Value<Own[Key]> | (Own[Key] extends { readonly default: {} } ? never : undefined);
};
