/** The responses dialect, in both directions. */
import type { Back, Front } from "../wire.ts";
import { createReader, readReply } from "./reply.ts";
import { readRequest, writeRequest } from "./request.ts";

export const front: Front = { readRequest };
export const back: Back = { path: "/responses", writeRequest, readReply, createReader };

export { readItems, shownIdOf, toKeptId, writeItem } from "./items.ts";
export { recall, writeCompaction } from "./object.ts";
export { checkConversationId, readCompactRequest } from "./request.ts";
