/** Says a value in the gateway's own words: what the file calls `max_body_bytes` is `maxBodyBytes` in the house. */
import type { Schema } from "../core/schema.ts";
import { isObject } from "./path.ts";

/** Every key of the schema has its place, with nothing in it where the value says nothing; the operator's own names stay. */
export function toWords<Value>(schema: Schema, value: Value): Words<Value> {
  return translate(schema, value) as Words<Value>;
}

/** A value whose keys are in the gateway's words. */
export type Words<Value> = Value extends readonly (infer Each)[]
  ? readonly Words<Each>[]
  : Value extends object
    ? { readonly [Key in keyof Value as Word<Key>]: Words<Value[Key]> }
    : Value;

type Word<Key> = Key extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<Word<Rest>>}` : Key;

function translate({ properties, items }: Schema, value: unknown): unknown {
  if (Array.isArray(value) && items !== undefined) return value.map((entry) => translate(items, entry));
  if (!isObject(value) || properties === undefined) return value;
  return Object.fromEntries(
    Object.entries(properties).map(([key, inner]) => [toWord(key), translate(inner, value[key])]),
  );
}

function toWord(key: string): string {
  return key.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
