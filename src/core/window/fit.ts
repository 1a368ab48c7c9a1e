/** Makes a conversation fit into the model's context window, or says that it does not. */
import { GatewayError } from "../errors.ts";
import type { Item } from "../item.ts";
import type { Place } from "../place/place.ts";
import type { Adapter } from "../ports.ts";
import type { Route } from "../route/route.ts";
import type { Ask, Settings, Truncation } from "../turn.ts";
import { type CountText, countItems, surelyFits } from "./tokens.ts";
import { fitWindow } from "./window.ts";

export interface FitParts {
  readonly adapter: Adapter & Partial<Pick<Route, "speaksFor">>;
  /** Loads what estimates the tokens of a text. */
  readonly tokenCounter: () => Promise<CountText>;
}

/** What the caller wants; a session found by a hint never ends, so its window moves automatically. */
export function truncationOf(ask: Pick<Ask<Item>, "truncation">, by: Place["by"]): Truncation {
  return ask.truncation ?? (by === "hint" ? "auto" : "disabled");
}

/** Without a known window, or if neither the caller nor its session asks for it, the model itself decides. */
export async function fitContext(
  { adapter, tokenCounter }: FitParts,
  ask: Ask<Item>,
  items: readonly Item[],
  truncation: Truncation,
): Promise<readonly Item[]> {
  const tokens = adapter.contextWindow?.(ask.model);
  if (tokens === undefined || (truncation === "disabled" && ask.truncation === undefined)) return items;
  const fixed = fixedTexts(ask.settings);
  const reserve = reserveOf(ask.settings, tokens, truncation);
  if (surelyFits(items, fixed, tokens - reserve)) return items;
  const count = await tokenCounter();
  if (truncation === "disabled") {
    const asked = countItems(items, fixed, count);
    if (asked <= tokens - reserve) return items;
    const shorter = asked <= tokens ? `Ask for an answer of fewer than ${reserve} tokens, or` : "Either";
    throw tooLong(tokens, ask, `${shorter} set 'truncation' to 'auto', or send less.`);
  }
  const fitted = fitWindow(items, fixed, { tokens, reserve }, count);
  if (fitted !== undefined) return fitted;
  throw tooLong(tokens, ask, "Even its newest part is too long: send less.");
}

/**
 * A conversation that may be cut leaves as much room as most answers take, or as the caller allows; but allowing all
 * there is does not mean that everything is to be forgotten for it.
 */
export function reserveOf({ maxOutputTokens }: Settings, tokens: number, truncation: Truncation): number {
  if (truncation === "disabled") return maxOutputTokens ?? 0;
  if (maxOutputTokens !== undefined) return Math.min(maxOutputTokens, Math.floor(tokens / 2));
  return Math.min(Math.floor(tokens / 4), usualAnswer);
}

const usualAnswer = 4_096;

/** What a model reads besides items. */
export function fixedTexts({ instructions, tools, format }: Settings): readonly string[] {
  const texts = tools.map((tool) => JSON.stringify(tool.type === "other" ? tool.extra.fields : tool));
  if (instructions !== undefined) texts.push(instructions);
  if (format?.type === "schema") texts.push(JSON.stringify(format.schema));
  return texts;
}

export function tooLong(tokens: number, { itemsParam }: Pick<Ask, "itemsParam">, remedy: string): GatewayError {
  return new GatewayError(
    "context_length_exceeded",
    `This conversation does not fit into the model's context window of ${tokens} tokens. ${remedy}`,
    { param: itemsParam },
  );
}
