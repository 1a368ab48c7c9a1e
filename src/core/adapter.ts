/** Who answers: `open` resolves with the first words or throws; then one batch of deltas per network read. */
import type { Delta } from "./event.ts";
import type { Dialect } from "./settings.ts";
import type { Answer, Remark, Turn } from "./turn.ts";

export type { Remark } from "./turn.ts";

export interface Adapter {
  /** Nothing has been said yet when it throws, so that another may be asked instead. */
  open(turn: Turn, signal: AbortSignal, tell: Tell): Promise<Reply>;
  /** The wire dialects whose own tools and fields it passes on; what only another knows is left out. */
  readonly speaks: readonly Dialect[];
  /** The models that it offers by itself. */
  models?(): Promise<readonly string[]>;
  /** How many tokens the input of a turn has, if it knows. */
  countTokens?(turn: Turn, signal: AbortSignal): Promise<number | undefined>;
  close?(): Promise<void>;
}

export interface Reply {
  readonly first: readonly Delta[];
  /** The next batch; undefined: the answer is complete. The next is read only when this one is taken. */
  next(): Promise<readonly Delta[] | undefined>;
  /** Its reader is through with it, at its end or before: this came of it. */
  close?(answer: Answer): void;
}

export type Tell = (remark: Remark) => void;
