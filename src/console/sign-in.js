/** Asks for a token, and says that another is needed if the reader has one already. */
/** @import { Door } from "./access.js" */
import { enter } from "./access.js";
import { fill, part, say, toWords } from "./elements.js";

/**
 * @param {HTMLElement} root
 * @param {Door | undefined} door what the token does not open; undefined: there is none yet
 * @param {(opened: readonly Door[]) => void} done
 */
export function showSignIn(root, door, done) {
  fill(root, "sign-in");
  const { title, words } = door === undefined ? first : more;
  part(root, "title", HTMLElement).textContent = title;
  part(root, "words", HTMLElement).replaceChildren(...toWords(words));
  const token = part(root, "token", HTMLInputElement);
  const button = part(root, "enter", HTMLButtonElement);
  const refusal = part(root, "refusal", HTMLElement);
  token.focus();
  part(root, "form", HTMLFormElement).addEventListener("submit", async (event) => {
    event.preventDefault();
    say(refusal, undefined);
    button.disabled = true;
    try {
      const opened = await enter(token.value.trim());
      if (door === undefined ? opened.length > 0 : opened.includes(door)) return done(opened);
      say(
        refusal,
        `This token is valid, but it opens ${opened.length === 0 ? "nothing that the console shows" : "only the endpoints"}.`,
      );
    } catch (thrown) {
      say(refusal, thrown instanceof Error ? thrown.message : String(thrown));
    }
    button.disabled = false;
    token.select();
  });
}

const first = {
  title: "Portico",
  words:
    "Sign in with the general token: `gateway.auth.token` in the configuration or, without a config file, the one in `.portico/operator-token`, which the link of the first start carries. A client's token opens conversations only.",
};

const more = {
  title: "Another token is needed",
  words:
    "The token you signed in with opens only the endpoints. The overview and the sessions need the general token: `gateway.auth.token` in the configuration or, without a config file, the one in `.portico/operator-token`.",
};
