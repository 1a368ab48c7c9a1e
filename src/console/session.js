/** One session as a conversation: its current thread, the others, and what can be done with it. */
/** @import { Place } from "./main.js" */
/** @import { Item, ToolOutput } from "../core/item.ts" */
/** @import { Status, Usage } from "../core/turn.ts" */
import { ask, askJson } from "./api.js";
import { fill, make, makeButton, part } from "./elements.js";
import { toElements } from "./items.js";
import { pairOutputs, threadOf, tipsOf } from "./tree.js";
import { toCount, toDate, toNumber } from "./words.js";

/**
 * A session as the gateway tells it; times are text.
 * @typedef {object} Session
 * @property {string} id
 * @property {string} owner
 * @property {string} createdAt
 * @property {string} updatedAt
 * @property {string} [tip] the turn that a new one continues
 * @property {readonly Turn[]} turns each behind its parent
 *
 * @typedef {object} Turn
 * @property {string} id
 * @property {string} [parent] which may have been deleted
 * @property {string} model empty, if none was asked
 * @property {string} createdAt
 * @property {Status} status
 * @property {Usage} [usage]
 * @property {readonly Item[]} input
 * @property {readonly Item[]} output
 * @property {{ readonly history?: string, readonly failure?: { readonly message: string } }} told
 */

/** How many turns are shown at first, and then added at a time. */
const shownTurns = 200;
const maxThreads = 500;

/**
 * @param {Place} place
 * @returns {Promise<undefined>}
 */
export async function openSession({ root, argument, token, signal, report }) {
  /** @type {Session} */
  const session = await askJson(`operator/sessions/${argument}`, token, { signal });
  fill(root, "session");
  describe(root, session);
  const tips = tipsOf(session.turns, session.tip);
  offerThreads(root, session, tips);
  part(root, "export", HTMLElement).addEventListener("click", () => {
    download(session.id, token, signal).catch(report);
  });
  const dialog = part(root, "dialog", HTMLDialogElement);
  part(root, "delete", HTMLElement).addEventListener("click", () => dialog.showModal());
  part(root, "keep", HTMLElement).addEventListener("click", () => dialog.close());
  part(root, "confirm", HTMLElement).addEventListener("click", async () => {
    dialog.close();
    try {
      await ask(`operator/sessions/${encodeURIComponent(session.id)}`, token, { method: "DELETE", signal });
      location.hash = "#/sessions";
    } catch (thrown) {
      report(thrown);
    }
  });
}

/**
 * @param {HTMLElement} root
 * @param {Session} session
 */
function describe(root, { id, owner, createdAt, updatedAt, turns }) {
  part(root, "id", HTMLElement).textContent = id;
  const tokens = turns.reduce((sum, { usage }) => sum + (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0), 0);
  part(root, "about", HTMLElement).textContent = [
    `Owner ${owner}`,
    toCount(turns.length, "turn"),
    toCount(tokens, "token"),
    `began ${toDate(createdAt)}`,
    `last ${toDate(updatedAt)}`,
  ].join(" · ");
  part(root, "question", HTMLElement).textContent =
    `All of its ${toCount(turns.length, "turn")} will be gone for good. Export it first if you may need it.`;
}

/**
 * Shows the current thread, and lets the reader choose another.
 * @param {HTMLElement} root
 * @param {Session} session
 * @param {readonly Turn[]} tips
 */
function offerThreads(root, { turns, tip }, tips) {
  const choice = part(root, "thread", HTMLSelectElement);
  choice.replaceChildren(
    ...tips.slice(0, maxThreads).map((turn) => {
      const name = `${toDate(turn.createdAt)}: ${beginningOf(turn)}`;
      return make("option", { value: turn.id }, turn.id === tip ? `Current, ${name}` : name);
    }),
  );
  part(root, "threads", HTMLElement).hidden = tips.length < 2;
  choice.addEventListener("change", () => showThread(root, threadOf(turns, choice.value), shownTurns));
  showThread(root, tips[0] === undefined ? [] : threadOf(turns, tips[0].id), shownTurns);
}

/**
 * @param {HTMLElement} root
 * @param {readonly Turn[]} thread
 * @param {number} most how many of its turns, counted from its end
 */
function showThread(root, thread, most) {
  const shown = thread.slice(-most);
  const items = shown.flatMap(({ input, output }) => [...input, ...output]);
  const outputs = pairOutputs(items);
  const beside = new Set(outputs.values());
  part(root, "talk", HTMLElement).replaceChildren(...shown.map((turn) => toEntry(turn, outputs, beside)));
  const rest = thread.length - shown.length;
  const words = `Show ${toCount(Math.min(rest, shownTurns), "earlier turn")} of ${toNumber(rest)}`;
  const isTorn = rest === 0 && thread[0]?.parent !== undefined;
  const more = makeButton(words, () => {
    const below = document.documentElement.scrollHeight - scrollY;
    showThread(root, thread, most + shownTurns);
    scrollTo({ top: document.documentElement.scrollHeight - below });
    // This button is gone: focus the one in its place, or the title.
    const next = part(root, "earlier", HTMLElement).querySelector("button") ?? part(root, "id", HTMLElement);
    next.focus({ preventScroll: true });
  });
  part(root, "earlier", HTMLElement).replaceChildren(
    ...(rest === 0 ? [] : [more]),
    ...(isTorn ? ["A turn before this was deleted."] : []),
  );
}

/**
 * @param {Turn} turn
 * @param {ReadonlyMap<Item, ToolOutput>} outputs
 * @param {ReadonlySet<Item>} beside
 */
function toEntry(turn, outputs, beside) {
  const { input, output, told } = turn;
  const failure = told.failure === undefined ? [] : [make("p", { class: "notice bad" }, told.failure.message)];
  const said = toElements([...input, ...output], outputs, beside);
  return make("li", {}, ...said, ...failure, toFoot(turn));
}

/** @param {Turn} turn */
function toFoot({ status, model, usage, createdAt, told }) {
  const words = [
    statusWords[status],
    model,
    ...(usage === undefined ? [] : [`${toNumber(usage.inputTokens)} → ${toCount(usage.outputTokens, "token")}`]),
    ...(told.history === undefined ? [] : [`history ${told.history}`]),
  ];
  const time = make("time", { datetime: createdAt }, toDate(createdAt));
  return make("p", { class: "foot" }, make("span", {}, `${words.filter(Boolean).join(" · ")} · `, time));
}

/** @type {Readonly<Record<Status, string>>} */
const statusWords = {
  completed: "",
  incomplete: "cut short",
  failed: "failed",
  cancelled: "cancelled",
};

/** @param {Turn} turn */
function beginningOf({ input, output }) {
  const text = [...input, ...output].map(wordsOf).find((words) => words !== "") ?? "no text";
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** @param {Item} item */
function wordsOf(item) {
  if (item.type !== "message") return "";
  const { content } = item;
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/**
 * Saves the gateway's export of the session.
 * @param {string} id
 * @param {string} token
 * @param {AbortSignal} signal
 */
async function download(id, token, signal) {
  const response = await ask(`operator/export?session=${encodeURIComponent(id)}`, token, { signal });
  const url = URL.createObjectURL(await response.blob());
  make("a", { href: url, download: `${id}.jsonl` }).click();
  // The browser reads it a bit later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
