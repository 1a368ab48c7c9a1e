/** Writes the requested answer format; the wires differ only in how deeply a schema is nested. */
import type { Format } from "../../core/turn.ts";

type SchemaFormat = Omit<Extract<Format, { type: "schema" }>, "type">;

export function writeFormat(
  format: Format | undefined,
  writeSchema: (schema: SchemaFormat) => object,
): object | undefined {
  switch (format?.type) {
    case undefined:
    case "text":
      return undefined;
    case "json":
      return { type: "json_object" };
    case "schema": {
      const { type: _, ...schema } = format;
      return { type: "json_schema", ...writeSchema(schema) };
    }
  }
}
