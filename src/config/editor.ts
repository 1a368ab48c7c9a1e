/** The schema of the file as editors and other programs read it. */
import type { Schema } from "../core/schema.ts";
import { isSecret, type Path } from "./path.ts";
import { type AdapterOptions, fileSchema } from "./schema.ts";
import { adapterSchema } from "./schema/adapter.ts";

/** The whole file as JSON Schema, for editors: what has a default may be absent, and a secret may stand in a file. */
export function toJsonSchema(adapterOptions: AdapterOptions): object {
  const whole = toEditorSchema(fileSchema, []);
  const gateway = (whole.properties as Record<string, { properties: Record<string, object> }>).gateway;
  const adapters = Object.entries(adapterOptions).map(([type, options]) =>
    toEditorSchema(adapterSchema(type, options), ["gateway", "adapters", "*"]),
  );
  Object.assign(gateway?.properties.adapters ?? {}, { patternProperties: { "^.*$": { anyOf: adapters } } });
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "urn:portico:configuration",
    title: "Portico configuration",
    ...whole,
  };
}

type Plain = Record<string, unknown>;

function toEditorSchema(schema: Schema, path: Path): Plain {
  const plain: Plain = { ...(schema as Plain) };
  if (plain.type === "string" && isSecret(path)) return orFile(plain);
  const properties = plain.properties as Record<string, Plain> | undefined;
  if (properties !== undefined) {
    plain.properties = mapValues(properties, (key, value) => toEditorSchema(value, [...path, key]));
  }
  const patterns = plain.patternProperties as Record<string, Plain> | undefined;
  if (patterns !== undefined) {
    plain.patternProperties = mapValues(patterns, (_, value) => toEditorSchema(value, [...path, "*"]));
  }
  if (plain.items !== undefined) plain.items = toEditorSchema(plain.items as Schema, [...path, 0]);
  return plain;
}

function orFile({ description, ...text }: Plain): Plain {
  const file = {
    type: "object",
    properties: { file: { type: "string", description: "The file that holds the secret." } },
    required: ["file"],
    additionalProperties: false,
  };
  return { description, anyOf: [text, file] };
}

function mapValues(values: Record<string, Plain>, change: (key: string, value: Plain) => Plain): Record<string, Plain> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(key, value)]));
}
