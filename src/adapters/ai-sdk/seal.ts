/** What a provider needs back next turn, kept as text with reasoning: signatures, hidden thoughts, marks on calls. */
import type { SharedV3ProviderOptions } from "@ai-sdk/provider";
import { isObject, parseJson } from "../json.ts";

export interface Seal {
  /** The blocks of reasoning, each with its full text: a caller may send back only the seal. */
  readonly blocks: readonly SealedBlock[];
  /** By call id. */
  readonly calls: Readonly<Record<string, SharedV3ProviderOptions | undefined>>;
}

export interface SealedBlock {
  readonly text: string;
  readonly options?: SharedV3ProviderOptions | undefined;
}

const maker = "ai-sdk";

export function writeSeal(seal: Seal): string {
  return JSON.stringify({ maker, ...seal });
}

/** Undefined if another maker wrote it. */
export function readSeal(encrypted: string | undefined): Seal | undefined {
  if (encrypted === undefined || !encrypted.startsWith(`{"maker":"${maker}"`)) return undefined;
  const written = parseJson(encrypted);
  if (!isObject(written) || !Array.isArray(written["blocks"]) || !isObject(written["calls"])) return undefined;
  const calls = Object.entries(written["calls"]).map(([callId, options]) => [callId, readOptions(options)]);
  return { blocks: written["blocks"].flatMap(readBlock), calls: Object.fromEntries(calls) };
}

function readBlock(block: unknown): readonly SealedBlock[] {
  if (!isObject(block) || typeof block["text"] !== "string") return [];
  return [{ text: block["text"], options: readOptions(block["options"]) }];
}

/** It was parsed from JSON; callers can change it, and the provider checks its own part. */
function readOptions(written: unknown): SharedV3ProviderOptions | undefined {
  return isObject(written) && Object.values(written).every(isObject) ? (written as SharedV3ProviderOptions) : undefined;
}
