/** The models a caller may choose from, as both dialects list them. */
import { toSeconds } from "./time.ts";

export function toModel(id: string, since: Date): unknown {
  return { id, object: "model", created: toSeconds(since), owned_by: "portico" };
}

export function toModelList(ids: readonly string[], since: Date): unknown {
  return { object: "list", data: ids.map((id) => toModel(id, since)) };
}
