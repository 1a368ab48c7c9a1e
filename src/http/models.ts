/** The models that a caller may name, as both wires list them. */
import { GatewayError } from "../core/errors.ts";
import { fits } from "./access.ts";
import type { Call, Route } from "./call.ts";

const paths = { chat: "/v1/chat/completions", responses: "/v1/responses" } as const;
const doors = ["chat", "responses"] as const;

export function createModelRoutes(list: () => Promise<readonly string[]>): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/v1/models",
      doors,
      handle: async (call) => ({
        body: { object: "list", data: (await allowed(call)).map(toModel) },
        headers: { "x-portico-endpoints": openEndpoints(call).join(", ") },
      }),
    },
    {
      method: "GET",
      path: "/v1/models/*",
      doors,
      async handle(call) {
        const [wanted = ""] = call.names;
        if ((await allowed(call)).includes(wanted)) return { body: toModel(wanted) };
        const message = `There is no model '${wanted}'. GET /v1/models lists them; other names are accepted too.`;
        throw new GatewayError("not_found", message, { param: "model", wireCode: "model_not_found" });
      },
    },
  ];

  async function allowed({ token: { models } }: Call): Promise<readonly string[]> {
    const all = await list();
    return models === undefined ? all : all.filter((model) => models.some((name) => fits(name, model)));
  }
}

const toModel = (id: string) => ({ id, object: "model", created: 0, owned_by: "portico" });

/** Where the caller may send a turn. */
function openEndpoints({ token, settings }: Call): readonly string[] {
  return doors.filter((door) => settings.endpoints[door] && token.opens.has(door)).map((door) => paths[door]);
}
