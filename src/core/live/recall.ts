/** Turns after the fact: retrieved by id, followed, cancelled, deleted. */
import { shownSuffix } from "../conversation/address.ts";
import { cancelledError, GatewayError } from "../errors.ts";
import type { OutputItem } from "../event.ts";
import { toAnswer } from "../frame/replay.ts";
import { type Item, isSteering } from "../item.ts";
import { rejoin } from "../place/shown.ts";
import type { StoredTurn } from "../store.ts";
import type { Answer } from "../turn.ts";
import type { KeyedParts } from "./keyed.ts";
import type { Followable, LiveTurn } from "./live-turn.ts";

export interface Recall {
  /** A turn of the owner, stored or live. */
  recall(owner: string, turnId: string): Promise<Recalled | undefined>;
  /** Cancels a background turn and waits until it is over; any other stays as it is. */
  cancel(owner: string, turnId: string): Promise<Recalled | undefined>;
  /** Deletes a turn for good; a running one is cancelled first. False: the owner has no such turn. */
  forget(owner: string, turnId: string): Promise<boolean>;
}

export interface Recalled extends Followable {
  readonly memo: string | undefined;
  readonly background: boolean;
  /** What it was asked, each item with its turn and its position there. */
  readonly input: readonly PlacedItem[];
  readonly state:
    | { readonly status: "queued" | "running"; readonly items: readonly OutputItem[] }
    | { readonly status: "over"; readonly answer: Answer };
}

interface PlacedItem {
  readonly turnId: string;
  readonly index: number;
  readonly item: Item;
}

type RecallParts = Pick<KeyedParts, "store" | "liveTurns" | "remoteTurns">;

export function createRecall({ store, liveTurns, remoteTurns }: RecallParts): Recall {
  async function recall(owner: string, turnId: string): Promise<Recalled | undefined> {
    const live = liveTurns.find(owner, turnId);
    if (live !== undefined) return recallHere(live);
    const found = await remoteTurns.find(owner, turnId);
    if (found === undefined || found.turn.status === "shown") return undefined;
    const { turn, isRunning, ...followable } = found;
    const shown = turn.parent === `${turnId}${shownSuffix}` ? await store.findTurn(owner, turn.parent) : undefined;
    const base = shown === undefined ? [] : toPlaced(shown.id, shown.input);
    return {
      ...followable,
      memo: turn.told?.memo,
      background: isInBackground(turn),
      input: rejoin(base, toPlaced(turnId, turn.input), ({ item }) => isSteering(item)),
      // What another gateway's turn says is not known here before it is over.
      state: isRunning ? { status: "running", items: [] } : { status: "over", answer: toAnswer(turn) },
    };
  }

  return {
    recall,
    async cancel(owner, turnId) {
      const live = liveTurns.find(owner, turnId);
      if (live === undefined) await remoteTurns.cancel(owner, turnId, isInBackground);
      else if (live.kind === "background") {
        live.cancel(cancelledError());
        await live.ended;
      }
      return recall(owner, turnId);
    },
    async forget(owner, turnId) {
      const live = liveTurns.find(owner, turnId);
      live?.cancel(new GatewayError("cancelled", "The turn was deleted."));
      await live?.ended;
      if (live === undefined) await remoteTurns.cancel(owner, turnId);
      return (await store.deleteTurn(owner, turnId)) || live !== undefined;
    },
  };
}

async function recallHere(live: LiveTurn): Promise<Recalled> {
  const placed = await live.placed;
  live.log.touch();
  const { status, input, items } = live.progress;
  return {
    ...placed,
    memo: live.memo?.(),
    background: live.kind === "background",
    input: toPlaced(live.turnId, input),
    state: { status, items },
  };
}

function toPlaced(turnId: string, input: readonly Item[]): readonly PlacedItem[] {
  return input.map((item, index) => ({ turnId, index, item }));
}

function isInBackground({ told }: StoredTurn): boolean {
  return told?.background === true;
}
