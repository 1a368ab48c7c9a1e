/** The models that a caller may name, as both wires list them. */
import { GatewayError } from "../core/errors.ts";
import { fits } from "./access.ts";
import type { Call, Route } from "./call.ts";

export function createModelRoutes(models: () => Promise<readonly string[]>): readonly Route[] {
  const allowed = async ({ token }: Call): Promise<readonly string[]> => {
    const all = await models();
    return token.models === undefined ? all : all.filter((model) => token.models?.some((name) => fits(name, model)));
  };
  const toModel = (id: string) => ({ id, object: "model", created: 0, owned_by: "portico" });
  const doors = ["chat", "responses"] as const;
  return [
    {
      method: "GET",
      path: "/v1/models",
      doors,
      handle: async (call) => ({ body: { object: "list", data: (await allowed(call)).map(toModel) } }),
    },
    {
      method: "GET",
      path: "/v1/models/:model",
      doors,
      async handle(call) {
        const [wanted = ""] = call.names;
        const found = (await allowed(call)).find((model) => model === wanted);
        if (found !== undefined) return { body: toModel(found) };
        const message = `There is no model '${wanted}'. GET /v1/models lists them; other names are accepted too.`;
        throw new GatewayError("not_found", message, { param: "model", wireCode: "model_not_found" });
      },
    },
  ];
}
