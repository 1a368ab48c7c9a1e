/** The console: signs the reader in, shows the view that the address names, and watches whether the gateway is up. */
/** @import { Health } from "./api.js" */
/** @import { Door } from "./access.js" */
import { enter, findToken, leave, takeToken } from "./access.js";
import { Gone, readHealth, Refusal } from "./api.js";
import { byId, make, say } from "./elements.js";
import { openOverview } from "./overview.js";
import { openSession } from "./session.js";
import { openSessions } from "./sessions.js";
import { showSignIn } from "./sign-in.js";
import { openTry } from "./try.js";

/**
 * Where a view is shown.
 * @typedef {object} Place
 * @property {HTMLElement} root
 * @property {string} argument what follows its name in the address, not decoded
 * @property {string} token
 * @property {AbortSignal} signal aborts when the view ends
 * @property {(thrown: unknown) => void} report reports errors after it was shown
 */

/**
 * Updates the view.
 * @typedef {(health: Health) => Promise<void>} Refresh
 */

/**
 * @typedef {object} View
 * @property {string} title
 * @property {Door} needs
 * @property {boolean} [lasts] it keeps running while the reader is elsewhere
 * @property {(place: Place) => Promise<Refresh | undefined>} open
 */

/** @type {Readonly<Record<string, View>>} */
const views = {
  overview: { title: "Overview", needs: "operator", open: openOverview },
  sessions: {
    title: "Sessions",
    needs: "operator",
    open: (place) => (place.argument === "" ? openSessions(place) : openSession(place)),
  },
  try: { title: "Try it", needs: "endpoints", lasts: true, open: openTry },
};

const watchMs = 3_000;

function start() {
  const outer = byId("place", HTMLElement);
  /** @type {Map<string, HTMLElement>} */
  const lasting = new Map();
  let leaving = new AbortController();
  let ending = new AbortController();
  let isStranded = false;
  /** @type {Refresh | undefined} */
  let refresh;

  async function show() {
    leaving.abort();
    leaving = new AbortController();
    const { signal } = leaving;
    refresh = undefined;
    isStranded = false;
    tell(undefined);
    const { name, argument, view } = readAddress();
    document.title = `${view.title} · Portico`;
    const isKnown = findToken("operator") !== undefined || findToken("endpoints") !== undefined;
    byId("bar", HTMLElement).hidden = !isKnown;
    markCurrent(name);
    const token = findToken(view.needs);
    const kept = token === undefined ? undefined : lasting.get(name);
    const root = kept ?? make("div", { class: `view ${name}` });
    outer.replaceChildren(root);
    if (kept !== undefined) return void kept.querySelector("h1")?.focus();
    if (token === undefined) return showSignIn(root, isKnown ? view.needs : undefined, begin);
    root.append(make("p", { class: "quiet" }, "Loading…"));
    const over = view.lasts ? ending.signal : signal;
    /** @param {unknown} thrown */
    const report = async (thrown) => {
      if (over.aborted) return;
      if (thrown instanceof Refusal && thrown.status === 401) {
        // A lasting view may have another token by now.
        leave(findToken(view.needs) ?? token);
        await show();
      }
      tell(thrown);
    };
    try {
      const opened = await view.open({ root, argument, token, signal: over, report });
      if (view.lasts) lasting.set(name, root);
      if (signal.aborted) return;
      refresh = opened && ((health) => opened(health).then(() => tell(undefined), report));
      root.querySelector("h1")?.focus();
    } catch (thrown) {
      if (signal.aborted) return;
      root.replaceChildren(make("h1", {}, view.title));
      isStranded = thrown instanceof Gone;
      await report(thrown);
    }
  }

  /**
   * Shows what the reader came for, or what a first token opens instead.
   * @param {readonly Door[]} opened
   */
  function begin(opened) {
    if (!opened.includes(readAddress().view.needs)) location.hash = "";
    void show();
  }

  /** A token that a link brings is kept as one that was typed. */
  async function arrive() {
    const token = takeToken();
    if (token === undefined) return show();
    try {
      await enter(token);
      await show();
    } catch (thrown) {
      await show();
      tell(thrown);
    }
  }

  /** @param {Health} health */
  async function accept(health) {
    paint(health);
    if (health.state !== "gone" && isStranded) return show();
    await refresh?.(health);
  }

  async function watch() {
    for (;;) {
      if (document.hidden)
        await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
      await accept(await readHealth());
      await pause(watchMs);
    }
  }

  addEventListener("hashchange", arrive);
  byId("sign-out", HTMLElement).addEventListener("click", () => {
    leave();
    lasting.clear();
    ending.abort();
    ending = new AbortController();
    void show();
  });
  void arrive();
  void watch();
}

/**
 * Waits a while, or until the reader returns to the page.
 * @param {number} milliseconds
 */
function pause(milliseconds) {
  const { promise, resolve } = Promise.withResolvers();
  const timer = setTimeout(resolve, milliseconds);
  addEventListener("focus", resolve, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    removeEventListener("focus", resolve);
  });
}

/** The view that the address names; without one, the first that a token opens. */
function readAddress() {
  const [, given = "", argument = ""] = location.hash.split("/");
  const usual = findToken("operator") === undefined && findToken("endpoints") !== undefined ? "try" : "overview";
  const name = Object.hasOwn(views, given) ? given : usual;
  const view = views[name];
  if (view === undefined) throw new Error(`There is no view '${name}'.`);
  return { name, argument, view };
}

/** @param {string} name */
function markCurrent(name) {
  for (const link of byId("views", HTMLElement).querySelectorAll("a")) {
    if (link.hash === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** @param {Health} health */
function paint({ state, words }) {
  const place = byId("health", HTMLElement);
  const text = state === "not-ready" ? "Not ready" : words;
  place.dataset["state"] = state;
  place.title = words;
  const shown = place.querySelector("span");
  // Screen readers announce only what changes.
  if (shown !== null && shown.textContent !== text) shown.textContent = text;
  byId("gone", HTMLElement).hidden = state !== "gone";
}

/**
 * Shows what went wrong, or clears it.
 * @param {unknown} thrown
 */
function tell(thrown) {
  // A gateway that is gone already has a notice.
  if (thrown instanceof Gone) return;
  const words = thrown instanceof Refusal ? thrown.message : `The page failed: ${thrown}`;
  say(byId("trouble", HTMLElement), thrown === undefined ? undefined : words);
}

start();
