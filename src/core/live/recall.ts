/** Turns after the fact: retrieved by id, followed, cancelled, deleted. */
import { shownSuffix } from "../conversation/address.ts";
import { GatewayError } from "../errors.ts";
import type { OutputItem } from "../event.ts";
import type { Item } from "../item.ts";
import type { BackgroundParts } from "./background.ts";
import type { Follow } from "./live.ts";
import type { LiveEntry } from "./live-turns.ts";
import type { About } from "../ports.ts";
import { isExact, replayInBatches, toAbout, toAnswer } from "../frame/replay.ts";
import type { StoredTurn } from "../store.ts";
import type { Answer } from "../turn.ts";

export interface Recall {
  /** A turn of the owner, stored or live. */
  recall(owner: string, turnId: string): Promise<Recalled | undefined>;
  /** Cancels a background turn and waits until it is over; any other stays as it is. */
  cancel(owner: string, turnId: string): Promise<Recalled | undefined>;
  /** Deletes a turn for good; a running one is cancelled first. False: the owner has no such turn. */
  forget(owner: string, turnId: string): Promise<boolean>;
}

export interface Recalled {
  readonly about: About;
  readonly memo: string | undefined;
  readonly background: boolean;
  /** What it was asked, each item with its turn and its position there. */
  readonly input: readonly PlacedItem[];
  readonly state:
    | { readonly status: "queued" | "running"; readonly items: readonly OutputItem[] }
    | { readonly status: "over"; readonly answer: Answer };
  /** Whether its events are known exactly as they were told, so that they can be resumed in the middle. */
  readonly isExact: boolean;
  /** All its events, past and future. */
  readonly follow: Follow;
}

interface PlacedItem {
  readonly turnId: string;
  readonly index: number;
  readonly item: Item;
}

/** Why a cancelled turn ends. */
export function cancelledError(): GatewayError {
  return new GatewayError("cancelled", "The turn was cancelled.");
}

export function createRecall({
  store,
  liveTurns,
  remoteTurns,
}: Pick<BackgroundParts, "store" | "liveTurns" | "remoteTurns">): Recall {
  async function recall(owner: string, turnId: string): Promise<Recalled | undefined> {
    const live = liveTurns.find(owner, turnId);
    if (live !== undefined) return recallLive(live);
    const found = await store.findTurn(owner, turnId);
    const turn = found && (await remoteTurns.refresh(found));
    if (turn === undefined || turn.status === "shown") return undefined;
    if (remoteTurns.isRunning(turn)) return recallRemote(turn, (signal) => remoteTurns.follow(turn, signal));
    const shown = turn.parent === `${turn.id}${shownSuffix}` ? await store.findTurn(owner, turn.parent) : undefined;
    return recallStored(turn, shown);
  }

  return {
    recall,
    async cancel(owner, turnId) {
      const live = liveTurns.find(owner, turnId);
      if (live?.background === true) {
        live.turn.cancel(cancelledError());
        await live.turn.ended;
      } else if (live === undefined) await remoteTurns.cancel(owner, turnId, isInBackground);
      return recall(owner, turnId);
    },
    async forget(owner, turnId) {
      const live = liveTurns.find(owner, turnId);
      live?.turn.cancel(new GatewayError("cancelled", "The turn was deleted."));
      await live?.turn.ended;
      if (live === undefined) await remoteTurns.cancel(owner, turnId);
      return (await store.deleteTurn(owner, turnId)) || live !== undefined;
    },
  };
}

async function recallLive({ turnId, turn, memo, background, input }: LiveEntry): Promise<Recalled> {
  const about = await turn.placed;
  turn.touch();
  return {
    about,
    memo: memo?.(),
    background,
    input: input().map((item, index) => ({ turnId, index, item })),
    state: { status: turn.status, items: turn.items },
    isExact: true,
    follow: turn.follow,
  };
}

/** What it says is not known here before it is over. */
function recallRemote(turn: StoredTurn, follow: Follow): Recalled {
  return { ...recallAbout(turn), state: { status: "running", items: [] }, isExact: true, follow };
}

function recallStored(turn: StoredTurn, shown: StoredTurn | undefined): Recalled {
  return {
    ...recallAbout(turn, shown),
    state: { status: "over", answer: toAnswer(turn) },
    isExact: isExact(turn),
    follow: () => replayInBatches(turn),
  };
}

function recallAbout(turn: StoredTurn, shown?: StoredTurn) {
  const input = [shown, turn].flatMap((each): readonly PlacedItem[] =>
    each === undefined ? [] : each.input.map((item, index) => ({ turnId: each.id, index, item })),
  );
  return { about: toAbout(turn), memo: turn.told?.memo, background: isInBackground(turn), input };
}

function isInBackground({ told }: StoredTurn): boolean {
  return told?.background === true;
}
