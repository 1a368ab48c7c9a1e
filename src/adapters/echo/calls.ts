/** Chooses the tools that the model calls, and makes up values that fit a JSON Schema of the usual kind, always the same. */
import { GatewayError } from "../../core/errors.ts";
import type { JsonSchema, Settings, Tool } from "../../core/settings.ts";
import { isObject } from "../../wires/fields.ts";

export interface Call {
  readonly type: "call";
  readonly kind: "function" | "custom";
  readonly name: string;
  readonly text: string;
}

type Callable = Exclude<Tool, { type: "other" }>;

/** Each line `CALL name arguments` of a text that `mayAsk`; the first tool if the tool choice demands a call and there is none. */
export function chooseCalls(settings: Settings, text: string, mayAsk: boolean): readonly Call[] {
  const { toolChoice: choice, parallelToolCalls } = settings;
  const isDemanded = choice?.type === "required" || choice?.type === "tool";
  if (choice?.type === "none" || !(mayAsk || isDemanded)) return [];
  const tools = settings.tools.filter((tool): tool is Callable => {
    return tool.type !== "other" && (choice?.type !== "tool" || tool.name === choice.name);
  });
  const calls: Call[] = [];
  const named = new Map(tools.map((tool) => [tool.name, tool]));
  for (const [, name = "", written = ""] of text.matchAll(/^CALL[ \t]+(\S+)(.*)$/gm)) {
    const tool = named.get(name);
    if (tool !== undefined) calls.push(toCall(tool, written.trim()));
  }
  const [first] = tools;
  if (calls.length === 0 && isDemanded && first !== undefined)
    calls.push(toCall(first, first.type === "custom" ? text : ""));
  return parallelToolCalls === false ? calls.slice(0, 1) : calls;
}

/** Written arguments go out as they are, even wrong ones: a client's author must see how it handles them. */
function toCall(tool: Callable, written: string): Call {
  const { type: kind, name } = tool;
  if (written !== "" || tool.type === "custom") return { type: "call", kind, name, text: written };
  return { type: "call", kind, name, text: JSON.stringify(makeSample({ type: "object", ...tool.parameters })) };
}

const maxParts = 10_000;
const maxDepth = 100;

/** Of objects what is required, of alternatives the first. */
export function makeSample(root: JsonSchema): unknown {
  let parts = 0;

  function make(part: unknown, depth: number): unknown {
    parts += 1;
    if (parts > maxParts || depth > maxDepth) throw unfit("is too large, or refers to itself without an end");
    const schema = isObject(part) ? part : {};
    const { $ref, anyOf, type = "properties" in schema ? "object" : "string" } = schema;
    if (typeof $ref === "string") return make(resolve(root, $ref), depth + 1);
    if (Array.isArray(anyOf)) return make(anyOf[0], depth + 1);
    if ("const" in schema) return schema["const"];
    if (Array.isArray(schema["enum"])) return schema["enum"][0];
    switch (Array.isArray(type) ? type.find((one) => one !== "null") : type) {
      case "object": {
        const { properties, required } = schema;
        const names = Array.isArray(required) ? required.map(String) : [];
        return Object.fromEntries(names.map((name) => [name, make(Object(properties)[name], depth + 1)]));
      }
      case "array":
        return Array.from({ length: lengthOf(schema, "minItems") }, () => make(schema["items"], depth + 1));
      case "integer":
      case "number":
        return makeNumber(schema);
      case "boolean":
        return true;
      case "string":
        return makeString(schema);
      default:
        return null;
    }
  }

  return make(root, 0);
}

function resolve(root: JsonSchema, reference: string): unknown {
  let found: unknown = root;
  for (const step of reference.split("/").slice(1)) found = isObject(found) ? found[step] : undefined;
  return found;
}

function limitOf(schema: JsonSchema, key: string, otherwise: number): number {
  const value = schema[key];
  return typeof value === "number" ? value : otherwise;
}

function lengthOf(schema: JsonSchema, key: string): number {
  const length = limitOf(schema, key, 0);
  if (length > maxParts) throw unfit("wants something that is too long");
  return length;
}

/** The nearest to 0 that is within the bounds. */
function makeNumber(schema: JsonSchema): number {
  return Math.min(Math.max(limitOf(schema, "minimum", -Infinity), 0), limitOf(schema, "maximum", Infinity));
}

function makeString(schema: JsonSchema): string {
  const text = formats.get(schema["format"]) ?? "text";
  return text.slice(0, limitOf(schema, "maxLength", Infinity)).padEnd(lengthOf(schema, "minLength"), "x");
}

const formats: ReadonlyMap<unknown, string> = new Map([
  ["date-time", "2024-01-01T00:00:00Z"],
  ["date", "2024-01-01"],
  ["email", "user@example.com"],
  ["uri", "https://example.com/"],
  ["uuid", "00000000-0000-4000-8000-000000000000"],
]);

function unfit(why: string): GatewayError {
  return new GatewayError("adapter_bad_request", `The echo adapter cannot answer in this JSON Schema: it ${why}.`);
}
