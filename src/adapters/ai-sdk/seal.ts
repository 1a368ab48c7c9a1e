/** What a provider wants back in the next turn, kept as text with reasoning: signatures, hidden thoughts, marks on calls. */
import type { SharedV4ProviderOptions } from "@ai-sdk/provider";
import { isObject, parseObject } from "../../wires/fields.ts";

export interface Seal {
  /** With its text: a caller may send back the seal alone. */
  readonly block?: { readonly text: string; readonly options: SharedV4ProviderOptions } | undefined;
  /** By call id. */
  readonly calls?: Readonly<Record<string, SharedV4ProviderOptions>> | undefined;
}

const maker = "ai-sdk";

export function writeSeal(seal: Seal): string {
  return JSON.stringify({ maker, ...seal });
}

/** Empty if another maker wrote it. Callers can change it; the provider checks its own part. */
export function readSeal(encrypted: string | undefined): Seal {
  const written = encrypted?.startsWith(`{"maker":"${maker}"`) === true ? parseObject(encrypted) : undefined;
  const { block, calls } = written ?? {};
  const isBlock = isObject(block) && typeof block["text"] === "string" && isOptions(block["options"]);
  const isCalls = isObject(calls) && Object.values(calls).every(isOptions);
  return { ...(isBlock && { block: block as Seal["block"] }), ...(isCalls && { calls: calls as Seal["calls"] }) };
}

export function isOptions(value: unknown): value is SharedV4ProviderOptions {
  return isObject(value) && Object.values(value).every(isObject);
}
