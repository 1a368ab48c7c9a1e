/** The part of JSON Schema that settings need, and the TypeScript types of what fits a schema written `as const`. */

export interface Schema {
  readonly type?: keyof Scalars | "array" | "object";
  /** What fits, in words; every pattern has one. */
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  /** One pattern for every key: an object whose keys are names chosen by the writer. */
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  /** Every integer has one. */
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly minItems?: number;
  readonly pattern?: string;
  readonly format?: string;
}

/** The schema of an object whose keys are known. */
export interface ObjectSchema extends Schema {
  readonly properties: Readonly<Record<string, Schema>>;
}

/** A value as written: only what is required is sure to be there. */
export type Given<S> = ValueOf<S, "written">;

/** A value whose defaults have been filled in. */
export type Complete<S> = ValueOf<S, "complete">;

type State = "written" | "complete";

type ValueOf<S, In extends State> = S extends { readonly enum: readonly (infer Value)[] }
  ? Value
  : S extends { readonly anyOf: readonly (infer Choice)[] }
    ? Choice extends unknown
      ? ValueOf<Choice, In>
      : never
    : S extends { readonly properties: infer Properties }
      ? ObjectOf<Properties, PresentKeys<S, Properties, In>, In>
      : S extends { readonly patternProperties: Readonly<Record<string, infer Each>> }
        ? Record<string, ValueOf<Each, In>>
        : S extends { readonly items: infer Each }
          ? ValueOf<Each, In>[]
          : S extends { readonly type: keyof Scalars }
            ? Scalars[S["type"]]
            : unknown;

interface Scalars {
  readonly string: string;
  readonly integer: number;
  readonly boolean: boolean;
}

type ObjectOf<Properties, Present, In extends State> = {
  [Key in keyof Properties as Key extends Present ? Key : never]: ValueOf<Properties[Key], In>;
} & {
  [Key in keyof Properties as Key extends Present ? never : Key]?: ValueOf<Properties[Key], In> | undefined;
};

type PresentKeys<S, Properties, In extends State> =
  | (S extends { readonly required: readonly (infer Key)[] } ? Key : never)
  | (In extends "complete"
      ? {
          [Key in keyof Properties]: Properties[Key] extends { readonly default: unknown } ? Key : never;
        }[keyof Properties]
      : never);
