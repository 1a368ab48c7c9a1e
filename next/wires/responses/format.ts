/** The wanted form of an answer, both ways: plain text, JSON, or JSON of a schema. */
import type { Format } from "../../core/turn.ts";
import {
  type Fields,
  notAllowed,
  pathOf,
  readBoolean,
  readObject,
  readString,
  requireName,
  requireObject,
} from "../fields.ts";

/** Reads `text.format`; `text` may be empty. */
export function readFormat(text: Fields): Format | undefined {
  const format = readObject(text, "format");
  if (format === undefined) return undefined;
  const type = requireName(format, "type");
  switch (type) {
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema":
      return {
        type: "schema",
        name: requireName(format, "name"),
        description: readString(format, "description"),
        schema: requireObject(format, "schema").values,
        strict: readBoolean(format, "strict"),
      };
    default:
      return notAllowed(pathOf(format, "type"), type, ["text", "json_object", "json_schema"]);
  }
}

export function writeFormat(format: Format): object {
  switch (format.type) {
    case "text":
      return { type: "text" };
    case "json":
      return { type: "json_object" };
    case "schema": {
      const { name, description, schema, strict } = format;
      return { type: "json_schema", description, name, schema, strict };
    }
  }
}
