/** The chat completions dialect, in both directions. */
import type { Back, Front } from "../wire.ts";
import { createReader, readReply } from "./reply.ts";
import { readRequest, writeRequest } from "./request.ts";

export const front: Front = { readRequest };

/** Its readers are also told of the turn, since functions may stand for custom tools in it. */
export const back = { path: "/chat/completions", writeRequest, readReply, createReader } satisfies Back;
