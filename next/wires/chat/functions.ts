/** `functions` and `function_call`, the form before tools: read as the tools and the choice that they stand for. */
import { GatewayError } from "../../core/errors.ts";
import { readFunction } from "../common.ts";
import { type Fields, invalid, isPresent, notAllowed, readObjects, requireName, toFields } from "../fields.ts";

/** The caller gets its call in the same form. */
export function usesFunctions(body: Fields): boolean {
  return isPresent(body, "functions");
}

/** The body with tools instead, so that no model ever gets both. Such a caller takes one call at a time. */
export function withTools(body: Fields): Fields {
  const functions = readObjects(body, "functions");
  if (functions === undefined) return body;
  if (isPresent(body, "tools") || isPresent(body, "tool_choice")) {
    const message = "'functions' cannot be used together with 'tools' and 'tool_choice', which replace them.";
    throw new GatewayError("mutually_exclusive", message, { param: "functions" });
  }
  const names = functions.map((described) => readFunction(described).name);
  const tool_choice = readChoice(body, names);
  const { functions: _, function_call: __, ...rest } = body.values;
  if (functions.length === 0) return { ...body, values: rest };
  const tools = functions.map(({ values }) => ({ type: "function", function: values }));
  return { ...body, values: { ...rest, tools, tool_choice, parallel_tool_calls: false } };
}

const words = ["auto", "none"];

function readChoice(body: Fields, names: readonly string[]): unknown {
  const { function_call: choice = null } = body.values;
  if (choice === null) return null;
  if (typeof choice === "string") return words.includes(choice) ? choice : notAllowed("function_call", choice, words);
  const name = requireName(toFields(choice, "function_call"), "name");
  if (names.includes(name)) return { type: "function", function: { name } };
  return invalid("function_call", `Invalid value for 'function_call': 'functions' has none named '${name}'.`);
}
