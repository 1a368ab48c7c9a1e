/** What both wires say alike of content that an upstream cannot take or could not read. */
import { GatewayError } from "../../core/errors.ts";
import type { Compaction, Part } from "../../core/item.ts";
import { textAt } from "../json.ts";

/** A part that only another dialect knows is refused, never left out. */
export function refusePart(part: Extract<Part, { type: "other" }>): never {
  const { fields } = part.extra;
  throw new GatewayError(
    "unsupported_parameter",
    `This gateway's adapter takes no content of type '${textAt(fields, "type") ?? "unknown"}'. Leave that part out, or send it as text, an image, audio or a file.`,
    { part },
  );
}

/** A conversation made short, in words that any model reads. */
export function tellCompaction({ summary }: Compaction): string {
  return `Summary of the conversation so far:\n${summary}`;
}
