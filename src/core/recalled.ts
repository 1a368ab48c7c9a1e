/** What was kept of a turn, as it is told again. */
import type { Heading } from "./heading.ts";
import type { StoredTurn } from "./store.ts";
import type { Answer } from "./turn.ts";

/** A turn that is over, as it can be told again. */
export interface Recalled {
  readonly heading: Heading;
  readonly answer: Answer;
  readonly echo: string | undefined;
  readonly input: StoredTurn["input"];
  readonly isBackground: boolean;
}

export function toRecalled(turn: StoredTurn): Recalled {
  const { key, createdAt, model, session, isHidden, told, answer: items, echo, input, record } = turn;
  const heading: Heading = {
    key,
    createdAt,
    model,
    session: isHidden ? undefined : session,
    told: (record?.told ?? "new") as Heading["told"],
    contextItems: record?.contextItems ?? 0,
    leftOutItems: 0,
    remarks: told.remarks ?? [],
  };
  return { heading, answer: { ...told, items }, echo, input, isBackground: record?.isBackground === true };
}
