/** Takes secrets out of a text: of URLs, of arguments, of headers and connection strings that stand in it. */
import { namesSecret } from "./path.ts";

/** What it keeps is what nobody could use; a reference like `${NAME}` stays as it is written. */
export function hideSecrets(text: string): string {
  const shown = text
    .replace(/^(rediss?:\/\/)\S*@/, "$1***@")
    .replaceAll(/(:\/\/)[^/?#\s]*@/g, "$1***@")
    .replaceAll(/([?&])([^=&#\s]+)=([^&#\s]+)/g, (found, mark: string, name: string, value: string) =>
      harmlessSettings.has(name.toLowerCase()) ? found : `${mark}${name}=${star(value)}`,
    );
  return hideNamed(hideArgument(shown))
    .replaceAll(/\bBearer\s+\S+/gi, hideSecond)
    .replaceAll(knownForm, star);
}

/** `***` in place of all but references. */
export function star(text: string): string {
  return text
    .split(/((?<!\$)\$\{[A-Za-z_]\w*\})/)
    .map((part, index) => (index % 2 === 1 || part === "" ? part : "***"))
    .join("");
}

/** What a URL asks for may be shown where its name says that it opens nothing. */
const harmlessSettings: ReadonlySet<string> = new Set([
  "api-version",
  "version",
  "alt",
  "model",
  "region",
  "prefix",
  "replicas",
]);

/** Keys that are known by their beginnings. */
const knownForm =
  /(?<![\w-])(?:(?:sk|pk|rk|xai)-(?=[\w-]*\d)[\w-]{8,}|(?:AIza|gsk_|hf_|gh[a-z]_|github_pat_)[\w-]{16,})/g;

/** An argument that is one assignment or one header: all behind its name is the secret, whatever is in it. */
function hideArgument(text: string): string {
  const [, name = "", sign = "", value = ""] = /^(-{0,2}[\w.-]+)(=|:\s*(?!\/\/))(.+)$/s.exec(text) ?? [];
  return namesSecret(name) ? `${name}${sign}${star(value)}` : text;
}

/** `PASSWORD=…`, `Authorization: Bearer …`, `"api_key": "…"` within a longer text. */
function hideNamed(text: string): string {
  return text.replaceAll(assignment, (_, name: string, sign: string, value: string) =>
    namesSecret(name) ? `${name}${sign}${star(value)}` : `${name}${sign}${hideNamed(value)}`,
  );
}

const assignment = /([\w-]+)(\s*=\s*["']?|:\s+["']?|["']\s*:\s*["']?)((?:(?:Bearer|Basic|Token)\s+)?[^\s"'&;,]+)/gi;

function hideSecond(words: string): string {
  const [scheme = "", space = "", secret = ""] = words.split(/(\s+)/, 3);
  return `${scheme}${space}${star(secret)}`;
}
