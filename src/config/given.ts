/** Adds the adapters that an embedding program passes beside its settings, by name. */
import { integer, type Keys } from "./form.ts";
import { isObject, problem, type Problem } from "./problem.ts";

/** The `type` that stands for them: they are asked once, since the program knows better. */
export const givenKinds: Readonly<Record<string, Keys>> = {
  given: { retries: integer(0, "How often it is asked again when it fails before its first word.", 0, 10) },
};

/** The settings with those adapters, and what is wrong with them. */
export function withGiven(settings: unknown, given: Readonly<Record<string, unknown>>) {
  const gateway = (isObject(settings) ? settings["gateway"] : undefined) ?? {};
  const written = (isObject(gateway) ? gateway["adapters"] : undefined) ?? {};
  // What is of the wrong type is told when it is read.
  if (!isObject(settings) || !isObject(gateway) || !isObject(written)) return { settings, problems: [] };
  const problems = Object.entries(given).flatMap(([name, adapter]): readonly Problem[] => {
    const path = ["gateway", "adapters", name];
    if (Object.hasOwn(written, name)) return [problem(path, "an adapter of this name is also passed; choose another")];
    const isAdapter = isObject(adapter) && typeof adapter["stream"] === "function";
    return isAdapter ? [] : [problem(path, "what is passed is no adapter: an object with the method stream")];
  });
  const passed = Object.fromEntries(Object.keys(given).map((name) => [name, { type: "given" }]));
  return { settings: { ...settings, gateway: { ...gateway, adapters: { ...written, ...passed } } }, problems };
}
