/** The models a caller may choose from, as both dialects list them, and those that a request names. */
import type { Ask } from "../core/turn.ts";
import { isObject } from "./fields.ts";
import { toSeconds } from "./time.ts";

export function toModel(id: string, since: Date): unknown {
  return { id, object: "model", created: toSeconds(since), owned_by: "portico" };
}

export function toModelList(ids: readonly string[], since: Date): unknown {
  return { object: "list", data: ids.map((id) => toModel(id, since)) };
}

/**
 * Every model that a request names, with its path: its own, those that some servers try in its place, and those of
 * tools, which may also come with items.
 */
export function* namedModels({ model, settings, items, itemsParam }: Ask): Generator<NamedModel, void, void> {
  yield ["model", model];
  const { models, fallbacks, tools } = settings.native?.fields ?? {};
  yield* modelsInList(models, "models");
  yield* modelsInFallbacks(fallbacks);
  yield* modelsInList(tools, "tools");
  yield* modelsInItems(items, itemsParam);
}

/** Some servers also accept lists by the model that they stand in for: `[{ "small": ["large"] }]`. */
function* modelsInFallbacks(fallbacks: unknown): Generator<NamedModel, void, void> {
  yield* modelsInList(fallbacks, "fallbacks");
  for (const [index, entry] of listOf(fallbacks).entries()) {
    if (!isObject(entry)) continue;
    for (const [name, list] of Object.entries(entry)) yield* modelsInList(list, `fallbacks[${index}].${name}`);
  }
}

/** The entries are names, or objects with a `model`. */
function* modelsInList(list: unknown, param: string): Generator<NamedModel, void, void> {
  for (const [index, entry] of listOf(list).entries()) {
    if (typeof entry === "string") yield [`${param}[${index}]`, entry];
    else if (isObject(entry) && typeof entry["model"] === "string") yield [`${param}[${index}].model`, entry["model"]];
  }
}

/** Those of the tools that come with items. */
export function* modelsInItems(items: Ask["items"], param: string): Generator<NamedModel, void, void> {
  for (const item of items) {
    for (const tool of "tools" in item ? (item.tools ?? []) : []) {
      if (tool.type !== "other") continue;
      const { model } = tool.extra.fields;
      if (typeof model === "string") yield [param, model];
    }
  }
}

export type NamedModel = readonly [path: string, model: string];

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
