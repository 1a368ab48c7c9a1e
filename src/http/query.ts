/** Reads the query parameters of the operator's routes. */
import { GatewayError } from "../core/errors.ts";
import { toStoredHint } from "./hint.ts";
import { toParameters } from "./paths.ts";
import type { HttpRequest } from "./request.ts";

type Query<Name extends string> = Readonly<Partial<Record<Name, string>>>;

const usualLimit = 50;
const maxLimit = 1_000;

/** Refuses unknown names: what a misspelled filter should exclude would be deleted, or listed, with the rest. */
export function readQuery<Name extends string>({ url }: HttpRequest, known: readonly Name[]): Query<Name> {
  const values: Partial<Record<Name, string>> = {};
  for (const [name, value] of Object.entries(toParameters(url))) {
    const found = known.find((each) => each === name);
    if (found === undefined) throw unknownName(name, known);
    // A repeated parameter arrives as a list.
    if (typeof value === "string") values[found] = value;
    else throw new GatewayError("invalid_value", `Invalid '${name}': it may be given only once.`, { param: name });
  }
  return values;
}

function unknownName(name: string, known: readonly string[]): GatewayError {
  const allowed = known.length === 0 ? "none is accepted here" : `those accepted here are ${known.join(", ")}`;
  return new GatewayError("unsupported_parameter", `Unknown query parameter '${name}'; ${allowed}.`, { param: name });
}

/** The parameters for a hint. */
export const hintNames = ["user", "hint", "owner"] as const;

/** The size of a page. */
export function readLimit(text: string | undefined): number {
  if (text === undefined || text === "") return usualLimit;
  const limit = /^\d+$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= maxLimit) return limit;
  throw new GatewayError("out_of_range", `Invalid 'limit': expected an integer from 1 to ${maxLimit}.`, {
    param: "limit",
  });
}

/** The hint of `user=ann` or `hint=header:X-Session-Id=garden`. */
export function readHintOf({ user, hint, owner }: Query<(typeof hintNames)[number]>): string | undefined {
  if (user !== undefined && hint !== undefined) throw exclusive("user", "hint");
  const written = user === undefined ? hint : `user=${user}`;
  if (written === undefined) return undefined;
  // An empty owner must not select everybody's sessions.
  if (owner === "") throw new GatewayError("invalid_value", "Invalid 'owner': it is empty.", { param: "owner" });
  const stored = toStoredHint(written);
  if (stored !== undefined) return stored;
  const param = user === undefined ? "hint" : "user";
  const expected = param === "user" ? "it is empty" : "expected e.g. header:X-Session-Id=garden or user=ann";
  throw new GatewayError("invalid_value", `Invalid '${param}': ${expected}.`, { param });
}

/** For parameters that exclude each other. */
export function exclusive(param: string, other: string): GatewayError {
  return new GatewayError("mutually_exclusive", `'${param}' and '${other}' cannot be used together.`, { param });
}

/** Whether it is about turns outside sessions. */
export function readOutside(text: string | undefined): boolean {
  if (text === undefined || text === "true" || text === "false") return text === "true";
  throw new GatewayError("invalid_value", "Invalid 'outside': expected true or false.", { param: "outside" });
}

/** A missing hint must not mean everybody's sessions. */
export function missingHint(): GatewayError {
  const message = "Specify whose sessions: 'user' or 'hint' is missing.";
  return new GatewayError("missing_required_parameter", message, { param: "user" });
}
