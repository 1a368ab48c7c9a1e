/** The responses dialect, in both directions. */
import type { Back, Front } from "../wire.ts";
import { createReader, readReply } from "./heard.ts";
import { readRequest } from "./request.ts";
import { writeRequest } from "./sent.ts";

export const front = { readRequest } satisfies Front;
export const back: Back = { path: "/responses", writeRequest, readReply, createReader };

export { readItems, shownIdOf, toKeptId } from "./items.ts";
export { writeCompaction } from "./object.ts";
export { checkConversationId, readCompactRequest } from "./request.ts";
export { recall, type ResponsesVoice } from "./voice.ts";
export { writeItem } from "./written.ts";
