/** The stored sessions, newest activity first, a page at a time. */
/** @import { Place } from "./main.js" */
/** @import { SessionSummary } from "../core/store.ts" */
import { askJson } from "./api.js";
import { fill, hasNoFocus, make, part, say } from "./elements.js";
import { toCount, toDate, toDistance } from "./words.js";

/**
 * Times are text on the wire.
 * @typedef {Omit<SessionSummary, "createdAt" | "updatedAt"> & { createdAt: string, updatedAt: string }} Summary
 * @typedef {{ readonly data: readonly Summary[], readonly hasMore: boolean }} Page
 *
 * Whose sessions are listed, or everybody's, under which hint, or any, and up to which one.
 * @typedef {{ readonly owner: string, readonly hint: string, readonly last?: string | undefined }} Listed
 */

/**
 * @param {Place} place
 * @returns {Promise<undefined>}
 */
export async function openSessions({ root, token, signal, report }) {
  /** @param {Listed} behind */
  function read({ owner, hint, last }) {
    const query = new URLSearchParams({ limit: "50" });
    if (owner !== "") query.set("owner", owner);
    if (hint !== "") query.set(hint.startsWith("header:") ? "hint" : "user", hint);
    if (last !== undefined) query.set("after", last);
    return /** @type {Promise<Page>} */ (askJson(`operator/sessions?${query}`, token, { signal }));
  }

  const first = await read(everything);
  fill(root, "sessions");
  const owner = part(root, "owner", HTMLInputElement);
  const hint = part(root, "hint", HTMLInputElement);
  const list = part(root, "list", HTMLElement);
  const more = part(root, "more", HTMLButtonElement);
  /** @type {Listed} */
  let listed = everything;
  /** The latest request. */
  let wanted = listed;
  /** @type {Set<string>} of those that are shown */
  const ids = new Set();

  /**
   * Drops a page that is no longer wanted when it arrives, and adds nothing twice.
   * @param {Listed} behind
   */
  async function show(behind) {
    wanted = behind;
    more.disabled = true;
    try {
      let page = await read(behind);
      // A session with a new turn has moved to the top, and those after it come again.
      while (behind.last !== undefined && page.hasMore && page.data.every(({ id }) => ids.has(id)))
        page = await read({ ...behind, last: page.data.at(-1)?.id });
      if (wanted !== behind) return;
      if (behind.last === undefined) {
        list.replaceChildren();
        ids.clear();
      }
      const rows = list.childElementCount;
      add(page, behind);
      // A disabled button has lost the focus, and may be gone.
      if (rows > 0 && hasNoFocus(more)) list.children[rows]?.querySelector("a")?.focus();
    } catch (thrown) {
      report(thrown);
    }
    more.disabled = false;
  }

  /**
   * @param {Page} page
   * @param {Listed} behind
   */
  function add({ data, hasMore }, behind) {
    const fresh = data.filter(({ id }) => !ids.has(id));
    for (const { id } of fresh) ids.add(id);
    list.append(...fresh.map(toRow));
    listed = { ...behind, last: data.at(-1)?.id };
    more.hidden = !hasMore;
    say(part(root, "none", HTMLElement), list.childElementCount > 0 ? undefined : noneWords(behind));
  }

  more.addEventListener("click", () => show({ ...listed }));
  part(root, "filter", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    void show({ owner: owner.value, hint: hint.value.trim() });
  });
  add(first, everything);
}

/** @type {Listed} */
const everything = { owner: "", hint: "" };

/** @param {Summary} session */
function toRow({ id, owner, updatedAt, turns, beginning }) {
  const time = make("time", { datetime: updatedAt, title: toDate(updatedAt) }, toDistance(updatedAt, new Date()));
  const about = make("span", { class: "quiet" }, `${owner} · ${toCount(turns, "turn")} · `, time);
  const link = make(
    "a",
    { href: `#/sessions/${encodeURIComponent(id)}`, title: id },
    beginning ?? "Too long to preview, or without text",
  );
  return make("li", {}, link, about);
}

/** @param {Listed} of */
function noneWords({ owner, hint }) {
  if (hint !== "") return `There is no session under '${hint}'${owner === "" ? "" : ` of the owner '${owner}'`}.`;
  return owner === ""
    ? "No sessions are stored yet. One begins with the first request that names it, e.g. with the header X-Session-Id."
    : `The owner '${owner}' has no sessions. Owners are the names of tokens; tokens without a name belong to 'default'.`;
}
