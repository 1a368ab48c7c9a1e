/** Serves the console: static files, sent as they are. They contain no secret, so they need no token. */
import { readFile } from "node:fs/promises";
import { GatewayError } from "../core/errors.ts";
import { behind, type Handler, type Route } from "./call.ts";

/** The page at `/console`, and its files behind it. */
export function createConsoleRoutes(folder: URL): readonly Route[] {
  const handle: Handler = async ({ settings, names: [name = "index.html"] }) => {
    if (!settings.hasConsole) {
      const message = 'The console is disabled. The operator can enable it with "gateway.http.console": true.';
      throw new GatewayError("endpoint_disabled", message);
    }
    // No other file can be asked for.
    const [, ending = ""] = /^[\w-]+\.(\w+)$/.exec(name) ?? [];
    const type = types[ending];
    const body = type && (await readFile(new URL(name, folder), "utf8").catch(() => undefined));
    if (type === undefined || body === undefined)
      throw new GatewayError("unknown_url", `The console has no file '${name}'. The page is at /console.`);
    return { body, headers: { ...pageHeaders, "content-type": `${type}; charset=utf-8` } };
  };
  return ["/console", "/console/:file"].map((path) => behind()("GET", path, handle));
}

/** Only this origin may be run, shown or requested, whatever a message tries. */
const pageHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

const types: Readonly<Record<string, string>> = { html: "text/html", css: "text/css", js: "text/javascript" };
