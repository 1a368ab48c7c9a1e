/** Shows the items of a conversation: messages, reasoning, calls with their outputs. None of it is trusted. */
/** @import { Content, Item, Part, ToolOutput } from "../core/item.ts" */
import { make, makeButton } from "./elements.js";
import { toNumber } from "./words.js";

/**
 * The elements of some items. An output is beside its call, if that is shown too.
 * @param {readonly Item[]} items
 * @param {ReadonlyMap<Item, ToolOutput>} outputs by their call
 * @param {ReadonlySet<Item>} beside the outputs shown there
 * @returns {readonly HTMLElement[]}
 */
export function toElements(items, outputs, beside) {
  return items.filter((item) => !beside.has(item)).map((item) => toElement(item, outputs));
}

/**
 * A block with its speaker's name.
 * @param {string} kind
 * @param {string} name
 * @param {...(Node | string)} children
 */
export function block(kind, name, ...children) {
  return make("div", { class: `said ${kind}` }, make("p", { class: "who" }, name), ...children);
}

/**
 * Very long text is shown in full only on request: a browser takes seconds for megabytes.
 * @param {string} text
 */
export function toText(text) {
  const shown = make("p", { class: "text" }, text.slice(0, maxShown));
  if (text.length <= maxShown) return shown;
  const more = makeButton(`Show all ${toNumber(text.length)} characters`, () => {
    shown.replaceChildren(text);
    // The button is gone; the reader continues from here.
    shown.tabIndex = -1;
    shown.focus({ preventScroll: true });
  });
  shown.append("… ", more);
  return shown;
}

const maxShown = 20_000;

/**
 * @param {Item} item
 * @param {ReadonlyMap<Item, ToolOutput>} outputs
 */
function toElement(item, outputs) {
  switch (item.type) {
    case "message":
      return block(
        item.role,
        item.name === undefined ? item.role : `${item.role}, ${item.name}`,
        ...toParts(item.content),
      );
    case "reasoning":
      return fold("Reasoning", [...item.summary, item.text].filter(Boolean).join("\n\n") || "It cannot be read here.");
    case "tool-call": {
      const output = outputs.get(item);
      const answer = output === undefined ? [make("p", { class: "quiet" }, "No output yet.")] : toOutput(output);
      const name = item.group === undefined ? item.name : `${item.group}.${item.name}`;
      const call = make("pre", {}, toText(item.arguments));
      return block("tool", `calls ${name}`, make("div", { class: "call" }, call, make("div", {}, ...answer)));
    }
    case "tool-output":
      return block("tool", `output of ${item.callId}`, ...toOutput(item));
    case "reference":
      return block("tool", "refers to", make("p", { class: "quiet" }, item.id));
    case "compaction":
      return fold("The conversation up to here, compacted", item.summary || "It cannot be read here.");
    case "other":
      return fold(String(item.extra.fields["type"] ?? "Other item"), JSON.stringify(item.extra.fields, undefined, 2));
  }
}

/** @param {ToolOutput} item */
function toOutput({ output }) {
  return typeof output === "string" ? [make("pre", {}, toText(output))] : toParts(output);
}

/**
 * @param {Content} content
 * @returns {readonly HTMLElement[]}
 */
function toParts(content) {
  return typeof content === "string" ? [toText(content)] : content.map(toPart);
}

/** @param {Part} part */
function toPart(part) {
  switch (part.type) {
    case "text":
      return toText(part.text);
    case "refusal":
      return make("div", { class: "refusal" }, make("p", { class: "who" }, "refusal"), toText(part.text));
    case "image":
      return placeholder("Image", part.fileId ?? part.url);
    case "audio":
      return placeholder(`Audio, ${part.format}`, part.data);
    case "file":
      return placeholder("File", part.name ?? part.fileId ?? part.url ?? part.data);
    case "other":
      return fold(String(part.extra.fields["type"] ?? "Other part"), JSON.stringify(part.extra.fields, undefined, 2));
  }
}

/**
 * Stands for what is not loaded: an image's URL could tell its owner who is looking.
 * @param {string} what
 * @param {string} [source]
 */
function placeholder(what, source = "") {
  const isInline = source.startsWith("data:") || source.length > 500;
  const where = isInline ? `${toNumber(source.length)} characters, sent with the message` : source;
  return make("p", { class: "placeholder" }, where === "" ? what : `${what}: ${where}`);
}

/**
 * @param {string} title
 * @param {string} text
 */
function fold(title, text) {
  return make("details", { class: "fold" }, make("summary", {}, title), toText(text));
}
