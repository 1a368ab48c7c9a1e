/** An answer as it arrives: its words, how its request was placed, and that request for a terminal. */
import { make, makeButton } from "./elements.js";
import { block, toText } from "./items.js";

/** @typedef {ReturnType<typeof beginAnswer>} Answer */

/**
 * Shows what was said, with a place for the answer.
 * @param {HTMLElement} talk
 * @param {string} words
 */
export function beginAnswer(talk, words) {
  const link = make("a", { hidden: "" }, "Open the session");
  const foot = make("p", { class: "foot" }, link);
  const answer = block("assistant", "assistant");
  const entry = make("li", {}, block("user", "you", toText(words)), answer, foot);
  /** @type {Map<string, Text>} */
  const kinds = new Map();
  talk.append(entry);
  scrollTo({ top: document.documentElement.scrollHeight });

  /** @param {"text" | "reasoning" | "refusal"} kind */
  function begin(kind) {
    const text = document.createTextNode("");
    const shown = make("p", { class: `text ${kind}` }, text);
    const fold = kind === "reasoning" && make("details", { class: "fold" }, make("summary", {}, "Reasoning"), shown);
    if (kind === "refusal") answer.append(make("p", { class: "who" }, "refusal"));
    answer.append(fold || shown);
    kinds.set(kind, text);
    return text;
  }

  return {
    /**
     * @param {"text" | "reasoning" | "refusal"} kind
     * @param {string} piece
     */
    add(kind, piece) {
      (kinds.get(kind) ?? begin(kind)).appendData(piece);
      follow();
    },
    /**
     * How the request was placed: the point of a gateway with a memory.
     * @param {Headers} headers
     * @param {boolean} isLater something was said before in the session
     */
    place(headers, isLater) {
      const [history, context] = [headers.get("x-portico-history"), headers.get("x-portico-context")];
      if (isLater && (history === "new" || history === "stateless"))
        answer.before(make("p", { class: "notice" }, forgotten));
      if (history !== null) link.before(chip(`history ${history}`, historyWords[history]));
      if (context !== null) link.before(chip(`context ${context}`, "What the model was shown, this message included"));
      const id = headers.get("x-portico-session");
      link.hidden = id === null;
      link.href = `#/sessions/${encodeURIComponent(id ?? "")}`;
    },
    /** @param {string} words */
    note(words) {
      link.before(chip(words, "Tokens in and out"));
    },
    /** @param {string} words */
    fail(words) {
      answer.append(make("p", { class: "notice bad" }, words));
      follow();
    },
    /** @param {string} curl */
    end(curl) {
      if (answer.childElementCount === 1) answer.append(make("p", { class: "quiet" }, "The model said nothing."));
      entry.append(toRequest(curl));
      follow();
    },
  };
}

/** @param {string} curl */
function toRequest(curl) {
  const line = make("pre", {}, curl);
  const copy = makeButton("Copy", async () => {
    try {
      await navigator.clipboard.writeText(curl);
      copy.textContent = "Copied";
    } catch {
      // Only local pages and those over TLS may write there; a selection is a keystroke away from it.
      getSelection()?.selectAllChildren(line);
      copy.textContent = "Selected: press Ctrl+C";
    }
  });
  return make("details", { class: "fold" }, make("summary", {}, "The same request with curl"), line, copy);
}

/**
 * @param {string} words
 * @param {string} [meaning]
 */
function chip(words, meaning = "") {
  return make("span", { class: "chip", title: meaning }, words);
}

const forgotten =
  "The model was not shown what was said above: the session is gone, or its clients, or callers with this token, resend their history, which this page does not. Another session name may help.";

/** @type {Readonly<Record<string, string>>} */
const historyWords = {
  new: "The first turn of a conversation",
  continued: "The gateway added what was said before",
  matched: "The history sent is known, and is used as sent",
  forked: "The history sent is known, and another turn follows it already",
  foreign: "The history sent is unknown, and is used as sent",
  stateless: "Nothing is remembered",
};

/** Keeps the end of the talk in view if the reader is there. */
function follow() {
  const { scrollHeight } = document.documentElement;
  if (scrollHeight - scrollY - innerHeight < nearPixels) scrollTo({ top: scrollHeight });
}

const nearPixels = 300;
