/** Makes and finds elements. What others have said is inserted as text, never as markup. */

/**
 * A new element; strings become text nodes, so that no message can become a part of the page.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Readonly<Record<string, string>>} attributes
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * @param {string} words
 * @param {() => unknown} act
 */
export function makeButton(words, act) {
  const button = make("button", { type: "button" }, words);
  button.addEventListener("click", act);
  return button;
}

/**
 * The part of a template's copy with this name.
 * @template {HTMLElement} Kind
 * @param {ParentNode} root
 * @param {string} name
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function part(root, name, kind) {
  return ofKind(root.querySelector(`[data-part="${name}"]`), name, kind);
}

/**
 * The element of the page with this id.
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function byId(id, kind) {
  return ofKind(document.getElementById(id), id, kind);
}

/**
 * Replaces whatever was there with a copy of a template.
 * @param {HTMLElement} root
 * @param {string} id
 */
export function fill(root, id) {
  root.replaceChildren(document.importNode(byId(id, HTMLTemplateElement).content, true));
}

/**
 * A sentence of ours, with names between backticks.
 * @param {string} sentence
 */
export function toWords(sentence) {
  return sentence.split("`").map((piece, index) => (index % 2 === 0 ? piece : make("code", {}, piece)));
}

/**
 * Shows a sentence, or hides the element without one.
 * @param {HTMLElement} element
 * @param {string | undefined} words
 */
export function say(element, words) {
  element.hidden = words === undefined;
  element.textContent = words ?? "";
}

/**
 * Whether nothing has the focus but what is about to lose it: the reader is not elsewhere then.
 * @param {...HTMLElement} losers
 */
export function hasNoFocus(...losers) {
  const { activeElement } = document;
  return activeElement === null || activeElement === document.body || losers.some((each) => each === activeElement);
}

/**
 * A table of figures; the first column names the row.
 * @param {readonly string[]} heads
 * @param {readonly (readonly (Node | string)[])[]} rows
 */
export function makeTable(heads, rows) {
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map(([name = "", ...figures]) =>
    make("tr", {}, make("th", { scope: "row" }, name), ...figures.map((text) => make("td", {}, text))),
  );
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
}

/**
 * @template {HTMLElement} Kind
 * @param {Element | null} found
 * @param {string} name
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
function ofKind(found, name, kind) {
  if (found instanceof kind) return found;
  throw new Error(`The page has no ${kind.name} '${name}'.`);
}
