/** The forms as JSON Schema, for editors: what has a default is optional, and a secret may be in a file of its own. */
import { adapterKinds } from "./adapters.ts";
import { type Form, type Section, toKindSection } from "./form.ts";
import { toFileForm } from "./keys.ts";

export function toJsonSchema(): object {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Portico's configuration",
    ...toSchema(toFileForm(adapterKinds)),
  };
}

function toSchema(form: Form): object {
  const { meaning: description } = form;
  const usual = "default" in form && form.default !== undefined ? { default: form.default } : {};
  switch (form.type) {
    case "text":
      if (form.isSecret) return { description, anyOf: [{ type: "string" }, reference] };
      return { type: "string", description, ...usual };
    case "choice":
      return { enum: form.choices, description, ...usual };
    case "integer":
      return { type: "integer", minimum: form.minimum, maximum: form.maximum, description, ...usual };
    case "flag":
      return { type: "boolean", description, ...usual };
    case "list":
      return {
        type: "array",
        items: toSchema(form.each),
        ...(form.isFilled && { minItems: 1 }),
        description,
        ...usual,
      };
    case "names":
      return { type: "object", additionalProperties: toSchema(form.each), description };
    case "section":
      return toObject(form);
    case "kinds":
      return {
        anyOf: Object.keys(form.kinds)
          .flatMap((kind) => toKindSection(form, kind) ?? [])
          .map(toObject),
      };
    case "anything":
      return { description };
  }
}

function toObject({ meaning, keys }: Section): object {
  const entries = Object.entries(keys);
  const required = entries.filter(([, form]) => form.isRequired).map(([key]) => key);
  return {
    type: "object",
    description: meaning,
    properties: Object.fromEntries(entries.map(([key, form]) => [key, toSchema(form)])),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
}

const reference = {
  type: "object",
  properties: { file: { type: "string", description: "The file that holds the secret." } },
  required: ["file"],
  additionalProperties: false,
};
