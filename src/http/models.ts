/** The models that a caller may name: as both wires list them, and as a request for a turn is held to them. */
import { GatewayError } from "../core/errors.ts";
import type { Ask } from "../core/turn.ts";
import { isObject } from "../wires/fields.ts";
import { behind, type Call, type Route } from "./call.ts";
import type { Token } from "./settings.ts";

const paths = { chat: "/v1/chat/completions", responses: "/v1/responses" } as const;
const doors = ["chat", "responses"] as const;

export function createModelRoutes(list: () => Promise<readonly string[]>): readonly Route[] {
  const toRoute = behind(...doors);
  return [
    toRoute("GET", "/v1/models", async (call) => ({
      body: { object: "list", data: (await allowed(call)).map(toModel) },
      headers: { "x-portico-endpoints": openEndpoints(call).join(", ") },
    })),
    toRoute("GET", "/v1/models/*", async (call) => {
      const [wanted = ""] = call.names;
      if ((await allowed(call)).includes(wanted)) return { body: toModel(wanted) };
      const message = `There is no model '${wanted}'. GET /v1/models lists them; other names are accepted too.`;
      throw new GatewayError("not_found", message, { param: "model", wireCode: "model_not_found" });
    }),
  ];

  async function allowed({ token }: Call): Promise<readonly string[]> {
    return (await list()).filter((model) => allows(token, model));
  }
}

const toModel = (id: string) => ({ id, object: "model", created: 0, owned_by: "portico" });

/** Where the caller may send a turn. */
function openEndpoints({ token, settings }: Call): readonly string[] {
  return doors.filter((door) => settings.endpoints[door] && token.opens.has(door)).map((door) => paths[door]);
}

/** An exact name, or a prefix with a star behind it. */
function allows({ models }: Token, model: string): boolean {
  if (models === undefined) return true;
  return models.some((name) => (name.endsWith("*") ? model.startsWith(name.slice(0, -1)) : model === name));
}

/** Of messages or items, and of tools. */
const most = 4_096;

/** How much is in a request for a turn, and which models it names. */
export function checkAsk(token: Token, { model, items, itemsParam, settings }: Ask): void {
  if (items.length > most) throw tooMany("too_many_messages", itemsParam);
  if (settings.tools.length > most) throw tooMany("too_many_tools", "tools");
  if (token.models === undefined) return;
  checkModel(token, model, "model");
  // Some servers try others in its place, and some tools have one of their own.
  const { models, fallbacks, tools } = settings.native?.fields ?? {};
  for (const [param, list] of Object.entries({ models, fallbacks, tools })) checkList(token, list, param);
}

/** The entries are names, or objects with a `model`. */
function checkList(token: Token, list: unknown, param: string): void {
  if (!Array.isArray(list)) return;
  for (const [at, entry] of list.entries()) {
    if (typeof entry === "string") checkModel(token, entry, `${param}[${at}]`);
    else if (isObject(entry) && typeof entry["model"] === "string")
      checkModel(token, entry["model"], `${param}[${at}].model`);
  }
}

function checkModel(token: Token, model: string, param: string): void {
  if (allows(token, model)) return;
  const allowed = (token.models ?? []).map((name) => `'${name}'`).join(", ");
  const message = `This token may not use the model '${model}'. Name one that it may use: ${allowed}. The operator can allow more (gateway.http.tokens[].models).`;
  throw new GatewayError("model_not_allowed", message, { param });
}

function tooMany(code: "too_many_messages" | "too_many_tools", param: string): GatewayError {
  return new GatewayError(code, `Too many entries in '${param}': at most ${most} are taken.`, { param });
}
