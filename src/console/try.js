/** A conversation with the model, like any client's: sends what is new and the session's name, streams the answer. */
/** @import { Place } from "./main.js" */
/** @import { Answer } from "./answer.js" */
/** @import { Dialect } from "./dialects.js" */
import { findToken } from "./access.js";
import { beginAnswer } from "./answer.js";
import { ask, Gone, Refusal } from "./api.js";
import { chooseDialect, toCurl } from "./dialects.js";
import { fill, hasNoFocus, make, part } from "./elements.js";
import { readEvents } from "./stream.js";
import { toCount, toNumber } from "./words.js";

/**
 * @param {Place} place
 * @returns {Promise<undefined>}
 */
export async function openTry({ root, token, signal, report }) {
  const { dialect, models } = await readOffer(token, signal);
  fill(root, "try");
  const model = offerModels(part(root, "models", HTMLElement), models);
  const session = part(root, "session", HTMLInputElement);
  const talk = part(root, "talk", HTMLElement);
  const text = part(root, "text", HTMLTextAreaElement);
  const form = part(root, "form", HTMLFormElement);
  const stop = part(root, "stop", HTMLButtonElement);
  const send = part(root, "send", HTMLButtonElement);
  // Not an earlier page's name: this one does not show what was said there.
  session.value = newName();
  /** @type {Set<string>} sessions in which something was said here */
  const begun = new Set();

  let stopping = new AbortController();
  stop.addEventListener("click", () => stopping.abort());
  part(root, "new", HTMLElement).addEventListener("click", () => {
    stopping.abort();
    session.value = newName();
    talk.replaceChildren();
    part(root, "empty", HTMLElement).hidden = false;
    text.focus();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const words = text.value.trim();
    if (!send.disabled && words !== "") await say(words);
  });

  /** @param {string} words */
  async function say(words) {
    stopping = new AbortController();
    part(root, "empty", HTMLElement).hidden = true;
    text.value = "";
    setBusy(true);
    const answer = beginAnswer(talk, words);
    const body = dialect.write(model.value, words);
    const name = session.value;
    try {
      // Another token may have been entered since the view opened.
      const response = await ask(dialect.path, findToken("endpoints") ?? token, {
        method: "POST",
        signal: AbortSignal.any([signal, stopping.signal]),
        headers: { "content-type": "application/json", "x-session-id": name },
        body: JSON.stringify(body),
      });
      answer.place(response.headers, begun.has(name));
      await accept(response, dialect, answer);
      begun.add(name);
    } catch (thrown) {
      answer.fail(explain(thrown, stopping.signal.aborted));
      if (thrown instanceof Refusal && thrown.status === 401) report(thrown);
    }
    answer.end(toCurl(new URL(dialect.path, location.href), name, body));
    if (hasNoFocus(stop)) text.focus();
    setBusy(false);
  }

  /** @param {boolean} busy */
  function setBusy(busy) {
    talk.setAttribute("aria-busy", String(busy));
    send.disabled = busy;
    send.hidden = busy;
    stop.hidden = !busy;
  }
}

/**
 * @param {Response} response
 * @param {Dialect} dialect
 * @param {Answer} answer
 */
async function accept({ body }, dialect, answer) {
  let isWhole = false;
  if (body !== null) {
    for await (const event of readEvents(body)) {
      const { text, reasoning, refusal, failure, usage, ended } = dialect.read(event);
      if (text !== undefined) answer.add("text", text);
      if (reasoning !== undefined) answer.add("reasoning", reasoning);
      if (refusal !== undefined) answer.add("refusal", refusal);
      if (usage !== undefined) answer.note(`${toNumber(usage.input)} → ${toCount(usage.output, "token")}`);
      if (failure !== undefined) answer.fail(failure);
      isWhole ||= ended === true || failure !== undefined;
    }
  }
  if (!isWhole) throw new Gone();
}

/**
 * @param {unknown} thrown
 * @param {boolean} isStopped
 */
function explain(thrown, isStopped) {
  if (isStopped) return "Stopped. The conversation goes on without this turn.";
  if (thrown instanceof Refusal) return `${thrown.message} (${thrown.status} ${thrown.code})`;
  return "The answer broke off: the gateway does not answer.";
}

/**
 * What this token may try: the responses endpoint, or chat if only that is enabled and open to it; and the models, none
 * if the adapter cannot list them, as any name may be entered then.
 * @param {string} token
 * @param {AbortSignal} signal
 * @returns {Promise<{ readonly dialect: Dialect, readonly models: readonly string[] }>}
 */
async function readOffer(token, signal) {
  try {
    const response = await ask("v1/models", token, { signal });
    /** @type {{ readonly data: readonly { readonly id: string }[] }} */
    const { data } = await response.json();
    return { dialect: chooseDialect(response.headers), models: data.map(({ id }) => id) };
  } catch (thrown) {
    if (!(thrown instanceof Refusal) || thrown.status === 401) throw thrown;
    return { dialect: chooseDialect(thrown.headers), models: [] };
  }
}

/**
 * @param {HTMLElement} place
 * @param {readonly string[]} models
 */
function offerModels(place, models) {
  const choice =
    models.length === 0
      ? make("input", {
          form: "composer",
          required: "",
          spellcheck: "false",
          placeholder: "its name",
          "aria-label": "Model",
        })
      : make("select", { "aria-label": "Model" }, ...models.map((id) => make("option", { value: id }, id)));
  place.replaceChildren(choice);
  return choice;
}

function newName() {
  return `console-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36)}`;
}
