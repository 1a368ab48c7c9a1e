/** Reads the query parameters of the operator's routes. */
import type { IncomingMessage } from "node:http";
import { type ErrorCode, GatewayError } from "../core/errors.ts";
import { toHintValue } from "./hint.ts";
import { toQuery } from "./router.ts";

type Query<Name extends string> = Readonly<Partial<Record<Name, string>>>;

/** Refuses unknown names: what a misspelled filter should exclude would be deleted, or listed, with the rest. */
export function readQuery<Name extends string>({ url = "" }: IncomingMessage, known: readonly Name[]): Query<Name> {
  const values: Partial<Record<Name, string>> = {};
  for (const [param, value] of toQuery(url)) {
    const name = known.find((each) => each === param);
    if (name === undefined) {
      const allowed = known.length === 0 ? "none is accepted here" : `those accepted here are ${known.join(", ")}`;
      throw refuse("unsupported_parameter", param, `Unknown query parameter '${param}'; ${allowed}.`);
    }
    if (values[name] !== undefined) throw invalid(param, "it may be given only once");
    values[name] = value;
  }
  return values;
}

/** The parameters for a hint. */
export const hintNames = ["user", "hint", "owner"] as const;

/** The hint of `user=ann` or `hint=header:X-Session-Id=garden`. */
export function readHintOf({ user, hint, owner }: Query<(typeof hintNames)[number]>): string | undefined {
  if (user !== undefined && hint !== undefined) throw exclusive("user", "hint");
  // An empty owner must not select everybody's sessions.
  if (owner === "") throw invalid("owner", "it is empty");
  if (user === undefined && hint === undefined) return undefined;
  const value = toHintValue(hint ?? `user=${user}`);
  if (value !== undefined) return value;
  throw hint === undefined
    ? invalid("user", "it is empty")
    : invalid("hint", "expected e.g. header:X-Session-Id=garden or user=ann");
}

const maxLimit = 1_000;

/** The size of a page. */
export function readLimit(text = "50"): number {
  const limit = /^\d+$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= maxLimit) return limit;
  throw refuse("out_of_range", "limit", `Invalid 'limit': expected an integer from 1 to ${maxLimit}.`);
}

export function exclusive(param: string, other: string): GatewayError {
  return refuse("mutually_exclusive", param, `'${param}' and '${other}' cannot be used together.`);
}

function invalid(param: string, fault: string): GatewayError {
  return refuse("invalid_value", param, `Invalid '${param}': ${fault}.`);
}

function refuse(code: ErrorCode, param: string, message: string): GatewayError {
  return new GatewayError(code, message, { param });
}
