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
  const { models, tools } = settings.native?.fields ?? {};
  for (const [index, other] of listOf(models).entries()) {
    if (typeof other === "string") yield [`models[${index}]`, other];
  }
  for (const [index, tool] of listOf(tools).entries()) {
    if (isObject(tool) && typeof tool["model"] === "string") yield [`tools[${index}].model`, tool["model"]];
  }
  yield* modelsInItems(items, itemsParam);
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
