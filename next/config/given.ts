/** Adds the adapters that an embedding program passes beside its settings, by name. */
import { adapterKinds } from "./adapters.ts";
import { integer, type Keys, optionalInteger } from "./form.ts";
import { isObject, problem, type Problem } from "./problem.ts";

/** The `type` of such an adapter in the settings. */
export const givenType = "given";

/** It is asked once, and may take its time: the program knows better. */
const givenKeys: Keys = {
  retries: integer(0, "How often it is asked again when it fails before its first word.", 0, 10),
  first_byte_timeout_ms: optionalInteger("The longest wait for its first words."),
  idle_timeout_ms: optionalInteger("The longest silence within an answer."),
  total_timeout_ms: optionalInteger("The longest that a whole answer may take."),
};

export interface WithGiven {
  readonly settings: unknown;
  readonly kinds: Readonly<Record<string, Keys>>;
  readonly problems: readonly Problem[];
}

/** The settings with those adapters, and what else it takes to load them. */
export function withGiven(settings: unknown, given: Readonly<Record<string, unknown>>): WithGiven {
  const gateway = (isObject(settings) ? settings["gateway"] : undefined) ?? {};
  const written = (isObject(gateway) ? gateway["adapters"] : undefined) ?? {};
  // What is of the wrong type is told when it is read.
  if (Object.keys(given).length === 0 || !isObject(settings) || !isObject(gateway) || !isObject(written)) {
    return { settings, kinds: adapterKinds, problems: [] };
  }
  const passed = Object.fromEntries(Object.keys(given).map((name) => [name, { type: givenType }]));
  const problems = Object.entries(given).flatMap(([name, adapter]): readonly Problem[] => {
    const own = written[name];
    if (own !== undefined && !(isObject(own) && own["type"] === givenType)) {
      const remedy = `choose another name, or write "type": "${givenType}" to configure it`;
      return [problem(["gateway", "adapters", name], `an adapter of this name is also passed; ${remedy}`)];
    }
    const isAdapter = isObject(adapter) && typeof adapter["stream"] === "function";
    return isAdapter ? [] : [problem(["adapters", name], "is no adapter: an object with the method stream")];
  });
  const missing = Object.entries(written).filter(
    ([name, own]) => isObject(own) && own["type"] === givenType && !Object.hasOwn(given, name),
  );
  for (const [name] of missing)
    problems.push(problem(["gateway", "adapters", name], "no adapter of this name is passed"));
  return {
    settings: { ...settings, gateway: { ...gateway, adapters: { ...passed, ...written } } },
    kinds: { ...adapterKinds, [givenType]: givenKeys },
    problems,
  };
}
