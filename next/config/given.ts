/** Adds the adapters that an embedding program passes beside its settings, by name. */
import { adapterKinds } from "./adapters.ts";
import { integer, type Keys } from "./form.ts";
import type { Circumstances } from "./load.ts";
import { isObject, problem, type Problem } from "./problem.ts";

/** The `type` of such an adapter in the settings. */
export const givenType = "given";

/** It is asked once: the program knows better. */
const givenKeys: Keys = {
  retries: integer(0, "How often it is asked again when it fails before its first word.", 0, 10),
};

export type WithGiven = { readonly settings: unknown } & Pick<Circumstances, "kinds" | "problems">;

/** The settings with those adapters, and what else it takes to load them. */
export function withGiven(settings: unknown, given: Readonly<Record<string, unknown>>): WithGiven {
  const gateway = (isObject(settings) ? settings["gateway"] : undefined) ?? {};
  const written = (isObject(gateway) ? gateway["adapters"] : undefined) ?? {};
  // What is of the wrong type is told when it is read.
  if (Object.keys(given).length === 0 || !isObject(settings) || !isObject(gateway) || !isObject(written)) {
    return { settings };
  }
  const passed = Object.fromEntries(Object.keys(given).map((name) => [name, { type: givenType }]));
  return {
    settings: { ...settings, gateway: { ...gateway, adapters: { ...passed, ...written } } },
    kinds: { ...adapterKinds, [givenType]: givenKeys },
    problems: Object.entries(given).flatMap(([name, adapter]) => judgeGiven(name, adapter, written[name])),
  };
}

function judgeGiven(name: string, adapter: unknown, written: unknown): readonly Problem[] {
  if (isObject(written) && written["type"] !== givenType) {
    const remedy = `choose another name, or write "type": "${givenType}" to configure it`;
    return [problem(["gateway", "adapters", name], `an adapter of this name is also passed; ${remedy}`)];
  }
  const isAdapter = isObject(adapter) && typeof adapter["stream"] === "function";
  return isAdapter ? [] : [problem(["adapters", name], "is no adapter: an object with the method stream")];
}
