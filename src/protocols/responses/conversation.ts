/** Conversations on the wire. */
import type { Item } from "../../core/item.ts";
import type { Conversation, Metadata } from "../../core/store.ts";
import type { Reference } from "../../core/turn.ts";
import { readMetadata } from "../common.ts";
import { invalid, missing, readBody } from "../fields.ts";
import { toSeconds } from "../time.ts";
import { readItems } from "./items.ts";
import type { Seal } from "./seal.ts";

/** An id that could be a conversation's. */
export function checkConversationId(id: string, param: string): string {
  if (id.startsWith("conv_")) return id;
  return invalid(param, `Invalid '${param}': '${id}'. Expected an ID that begins with 'conv'.`);
}

/** What a new conversation contains; both are optional. */
export function readNewConversation(body: unknown, seal: Seal) {
  const fields = readBody(body);
  return {
    metadata: readMetadata(fields, "metadata") ?? {},
    items: readItems(fields, "items", seal) ?? [],
  };
}

/** The metadata to replace a conversation's; null removes all. */
export function readNewMetadata(body: unknown): Metadata {
  const fields = readBody(body);
  if (fields.values["metadata"] === undefined) missing("metadata");
  return readMetadata(fields, "metadata") ?? {};
}

/** The items to add to a conversation. */
export function readNewItems(body: unknown, seal: Seal): readonly (Item | Reference)[] {
  return readItems(readBody(body), "items", seal) ?? missing("items");
}

export function toWireConversation({ id, createdAt, metadata }: Conversation): object {
  return { id, object: "conversation", created_at: toSeconds(createdAt), metadata };
}

/** Its items are gone with it. */
export function toDeletedConversation(id: string): object {
  return { id, object: "conversation.deleted", deleted: true };
}
