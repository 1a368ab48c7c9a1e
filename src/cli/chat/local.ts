/** A partner in this process: the gateway itself, without a listener. */
import { toHint } from "../../channel.ts";
import type { Config, Hint } from "../../config/config.ts";
import { createIds } from "../../ids.ts";
import { unnamedOwner } from "../../parts.ts";
import { createPortico } from "../../portico.ts";
import type { ChatBackend } from "./backend.ts";

/** Throws if another gateway has the store. */
export async function openLocal(config: Config, naming: Hint | undefined): Promise<ChatBackend> {
  const portico = await createPortico({
    ...config,
    http: { ...config.http, endpoints: { chat: false, responses: false } },
    // The log would mix with the talk.
    log: { level: "error" },
  });
  const newId = createIds(() => new Date());
  return {
    models: () => portico.models(),
    async ask({ messages, session, model }, signal) {
      const { about, events } = await portico.gateway.answer(
        {
          model,
          items: messages.map((message) => ({ type: "message", ...message })),
          itemsParam: "messages",
          settings: { tools: [] },
          stream: true,
          keep: "in-session",
        },
        { turnId: newId("resp"), owner: unnamedOwner, ...toHint(naming, session), signal },
      );
      return { history: about.history, sessionId: about.session, events };
    },
    close: () => portico.close(),
  };
}
