/** The file's schema as editors and other programs read it. */
import type { Schema } from "../core/schema.ts";
import { isSecret, type Path } from "./path.ts";
import { type AdapterOptions, fileSchema, gatewaySchema } from "./schema.ts";
import { adapterSchema } from "./schema/adapter.ts";

/** The whole file as JSON Schema: what has a default is optional, and a secret may be in a file of its own. */
export function toJsonSchema(adapterOptions: AdapterOptions): object {
  const anyOf = Object.entries(adapterOptions).map(([type, options]) => adapterSchema(type, options));
  const adapters = { ...gatewaySchema.properties.adapters, patternProperties: { "^.*$": { anyOf } } };
  const gateway = { ...gatewaySchema, properties: { ...gatewaySchema.properties, adapters } };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "urn:portico:configuration",
    title: "Portico configuration",
    ...orFiles({ ...fileSchema, properties: { ...fileSchema.properties, gateway } }, []),
  };
}

/** The same schema, with a reference to a file allowed for every secret. */
function orFiles(schema: Schema, path: Path): Schema {
  const { description, ...text } = schema;
  if (schema.type === "string" && isSecret(path)) return { description, anyOf: [text, file] };
  const { properties, patternProperties, items, anyOf } = schema;
  const each = (schemas: Readonly<Record<string, Schema>>) =>
    Object.fromEntries(Object.entries(schemas).map(([key, inner]) => [key, orFiles(inner, [...path, key])]));
  return {
    ...schema,
    ...(properties && { properties: each(properties) }),
    ...(patternProperties && { patternProperties: each(patternProperties) }),
    ...(items && { items: orFiles(items, [...path, 0]) }),
    ...(anyOf && { anyOf: anyOf.map((choice) => orFiles(choice, path)) }),
  };
}

const file: Schema = {
  type: "object",
  properties: { file: { type: "string", description: "The file that holds the secret." } },
  required: ["file"],
  additionalProperties: false,
};
