/** The items of an answer in the making, and the pieces they come in. One item is open at a time. */
import type { Delta } from "../delta.ts";
import type { ItemEvent, OutputItem } from "../event.ts";
import { type Added, beginDraft, type Draft } from "./draft.ts";
import { createPiecesRecorder } from "./pieces.ts";

/** Gets the events of an answer. */
export type Tell = (event: ItemEvent) => void;

export function createItems(tell: Tell) {
  const items: OutputItem[] = [];
  const pieces = createPiecesRecorder();
  let open: OpenItem | undefined;
  let brokenOff: number | undefined;

  function tellAdded(added: Added | undefined): void {
    if (added === undefined) return;
    pieces.record(added);
    tell({ type: "item-delta", index: items.length, ...added });
  }

  function close(whole = true): void {
    if (open === undefined) return;
    const { draft } = open;
    if (whole) tellAdded(draft.complete?.());
    else brokenOff = items.length;
    const item = draft.finish(whole);
    tell({ type: "item-end", index: items.length, item, whole });
    items.push(item);
    open = undefined;
  }

  return {
    items,
    isEmpty: (): boolean => open === undefined && items.length === 0,
    isOpen: (type: OutputItem["type"], call?: number): boolean => open?.type === type && open.call === call,
    /** Nothing is open that another call would have to wait for. */
    isComplete: (): boolean => open?.draft.isWhole?.() !== false,
    begin(skeleton: OutputItem, call?: number): void {
      close();
      open = { type: skeleton.type, draft: beginDraft(skeleton), call };
      pieces.beginItem(skeleton.type === "message" && skeleton.extra !== undefined);
      tell({ type: "item-start", index: items.length, item: skeleton });
    },
    add: (delta: Delta): void => tellAdded(open?.draft.accept(delta)),
    close,
    toRecord: () => ({ brokenOff, pieces: pieces.toPieces() }),
  };
}

interface OpenItem {
  readonly type: OutputItem["type"];
  readonly draft: Draft;
  /** The adapter's number of a call. */
  readonly call: number | undefined;
}
