/** Reads `functions` and `function_call`, the form before tools, as the tools and the choice that they stand for. */
import { GatewayError } from "../../core/errors.ts";
import { readFunction } from "../common.ts";
import { type Fields, invalid, isPresent, notAllowed, readObjects, requireName, toFields } from "../fields.ts";

/** The caller uses functions, and gets calls in the same form. */
export function speaksOfFunctions(body: Fields): boolean {
  return isPresent(body, "functions");
}

/** The body with tools instead, so that no model ever gets both. Such a caller takes one call at a time. */
export function withTools(body: Fields): Fields {
  const functions = readObjects(body, "functions");
  if (functions === undefined) {
    if (isPresent(body, "function_call")) refuse("'function_call' is only allowed when 'functions' are specified.");
    return body;
  }
  for (const modern of ["tools", "tool_choice"]) if (isPresent(body, modern)) refuseBoth(modern);
  const names = functions.map((described) => readFunction(described).name);
  const choice = readChoice(body, names);
  const { functions: _, function_call: __, ...rest } = body.values;
  if (functions.length === 0) return { ...body, values: rest };
  const tools = functions.map(({ values }) => ({ type: "function", function: values }));
  return { ...body, values: { ...rest, tools, tool_choice: choice, parallel_tool_calls: false } };
}

const words = ["auto", "none"] as const;

/** Like `tool_choice`; null if absent. */
function readChoice(body: Fields, names: readonly string[]): unknown {
  const { function_call: choice = null } = body.values;
  if (choice === null) return null;
  if (typeof choice === "string") {
    return words.find((known) => known === choice) ?? notAllowed("function_call", choice, words);
  }
  const name = requireName(toFields(choice, "function_call"), "name");
  if (!names.includes(name)) refuse(`no function named '${name}' was specified in the 'functions' parameter.`);
  return { type: "function", function: { name } };
}

function refuse(why: string): never {
  invalid("function_call", `Invalid value for 'function_call': ${why}`);
}

function refuseBoth(modern: string): never {
  throw new GatewayError(
    "mutually_exclusive",
    `'functions' and '${modern}' cannot be used together. Use 'tools' and 'tool_choice', which replace 'functions' and 'function_call'.`,
    { param: "functions" },
  );
}
