/** What the operator has decided, in the gateway's own words: the schema's keys, unless another form is better. */
import { hash } from "node:crypto";
import type { Schema } from "../core/schema.ts";
import { isObject } from "./path.ts";
import type { PlacedFile } from "./places.ts";
import { gatewaySchema } from "./schema.ts";
import { adapterKeys, type AdapterShape } from "./schema/adapter.ts";
import { endpointNames } from "./schema/http.ts";

/** Complete: every default filled in, every reference resolved, every path absolute. */
export type Config = ReturnType<typeof toConfig>;

/** The front door. */
export type HttpConfig = Config["http"];

/** What is remembered. */
export type SessionsConfig = Config["sessions"];

/** An adapter; its options have passed the schema of its type. */
export type AdapterConfig = ReturnType<typeof toAdapter>;

/** Where a request may name its session: a header, by its lower-case name, or the body's `user`. */
export type Hint = { readonly type: "header"; readonly name: string } | { readonly type: "user" };

type Gateway = Words<PlacedFile["gateway"]>;
type TokenShape = Gateway["http"]["tokens"][number];

/** The contents must have passed the schema and every rule. `file` is undefined in a run without one. */
export function toConfig({ gateway }: PlacedFile, file: string | undefined) {
  const { http, adapters, sessions, ...others } = toWords(gatewaySchema, gateway);
  return {
    file,
    ...others,
    http: toHttp(http),
    adapters: toAdapters(adapters),
    sessions: toSessions(sessions),
  } as const;
}

function toHttp({ endpoints, tokens, limits, cors, websocket, ...others }: Gateway["http"]) {
  const { requestsPerMinute, burst, ...bounds } = limits;
  const named: readonly ReturnType<typeof toNamedToken>[] = tokens.map(toNamedToken);
  return {
    ...others,
    endpoints: { chat: endpoints.compatChat, responses: endpoints.compatResponses },
    tokens: named,
    limits: { ...bounds, rate: toRate(requestsPerMinute, burst) },
    corsOrigins: cors.origins,
    webSocket: websocket,
  } as const;
}

/** If both endpoints are off, nothing listens. */
export function hasListener({ endpoints }: HttpConfig): boolean {
  return endpoints.chat || endpoints.responses;
}

/** A named token, e.g. of one app: its name owns what is made with it. */
function toNamedToken(shape: TokenShape) {
  const { name, token = "", sha256, expiresAt, endpoints = endpointNames, models, history, limits } = shape;
  // Not a Buffer, of which a program that embeds Portico may have no type.
  const digest: Uint8Array = sha256 === undefined ? hash("sha256", token, "buffer") : Buffer.from(sha256, "hex");
  return {
    owner: name,
    sha256: digest,
    opens: new Set(endpoints.map((key) => endpointsOf[key])),
    models,
    expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt),
    alwaysResends: history === undefined ? undefined : history === "resent",
    rate: toRate(limits.requestsPerMinute, limits.burst),
    maxConcurrentTurns: limits.maxConcurrentTurns,
  } as const;
}

const endpointsOf = { compat_chat: "chat", compat_responses: "responses", metrics: "metrics" } as const;

/** A token bucket: requests per minute, and how many at once. Undefined: no limit. */
function toRate(requestsPerMinute: number | undefined, burst: number | undefined) {
  if (requestsPerMinute === undefined) return undefined;
  return { requestsPerMinute, burst: burst ?? requestsPerMinute } as const;
}

function toAdapters(adapters: Gateway["adapters"]): Readonly<Record<string, AdapterConfig>> {
  return Object.fromEntries(
    Object.entries(adapters).map(([name, adapter]) => [name, toAdapter(adapter as AdapterShape)]),
  );
}

function toAdapter({ type, ...adapter }: AdapterShape) {
  const keys = toWords({ properties: adapterKeys }, adapter);
  const own = Object.entries(adapter).filter(([key]) => !Object.hasOwn(adapterKeys, key));
  const options: Readonly<Record<string, unknown>> = Object.fromEntries(own);
  return {
    type,
    ...keys,
    breaker: keys.breaker.failures === 0 ? undefined : keys.breaker,
    options,
  } as const;
}

function toSessions({ hints, history, ttl, idempotencyTtl, eventsTtl, ...others }: Gateway["sessions"]) {
  const named: readonly Hint[] = hints.map(toHint);
  return {
    ...others,
    hints: named,
    alwaysResends: history === "resent",
    ttlMs: toMs(ttl),
    idempotencyMs: toMs(idempotencyTtl),
    eventsMs: toMs(eventsTtl),
  } as const;
}

function toHint(hint: string): Hint {
  return hint === "user" ? { type: "user" } : { type: "header", name: hint.slice("header:".length).toLowerCase() };
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time like `30d` in ms; undefined for `never`. */
function toMs(duration: string): number | undefined {
  return duration === "never" ? undefined : Number.parseInt(duration, 10) * (unitMs[duration.slice(-1)] ?? 0);
}

/**
 * What the file calls `max_body_bytes` is `maxBodyBytes` in the code. Every key of the schema is there, undefined where
 * the value has none; names that the operator chose stay as they are.
 */
function toWords<Value>(schema: Schema, value: Value): Words<Value> {
  return translate(schema, value) as Words<Value>;
}

/** A value whose keys are in the gateway's words. */
type Words<Value> = Value extends readonly (infer Each)[]
  ? readonly Words<Each>[]
  : Value extends object
    ? { readonly [Key in keyof Value as Word<Key>]: Words<Value[Key]> }
    : Value;

type Word<Key> = Key extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<Word<Rest>>}` : Key;

function translate({ properties, items }: Schema, value: unknown): unknown {
  if (Array.isArray(value) && items !== undefined) return value.map((entry) => translate(items, entry));
  if (!isObject(value) || properties === undefined) return value;
  return Object.fromEntries(
    Object.entries(properties).map(([key, inner]) => [toWord(key), translate(inner, value[key])]),
  );
}

function toWord(key: string): string {
  return key.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
