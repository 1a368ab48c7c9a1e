/** The models a caller may choose from, as both dialects list them. */

export function toModel(id: string, since: Date): unknown {
  return { id, object: "model", created: Math.floor(since.getTime() / 1000), owned_by: "portico" };
}

export function toModelList(ids: readonly string[], since: Date): unknown {
  return { object: "list", data: ids.map((id) => toModel(id, since)) };
}
