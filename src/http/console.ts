/** Serves the console: static files, sent as they are. They contain no secret, so they need no token. */
import { hash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";
import { GatewayError } from "../core/errors.ts";
import type { Call, Handler, Result, Route } from "./call.ts";

/** The page at `/console`, and its files behind it. They are read when they are first asked for, and kept. */
export function createConsoleRoutes(folder: URL): readonly Route[] {
  let reading: Promise<Files> | undefined;

  const handle: Handler = async ({ request, settings, names: [name = page] }) => {
    if (!settings.hasConsole) {
      const message = 'The console is disabled. The operator can enable it with "gateway.http.console": true.';
      throw new GatewayError("endpoint_disabled", message);
    }
    const file = (await (reading ??= readFiles(folder))).get(name);
    if (file === undefined)
      throw new GatewayError("unknown_url", `The console has no file '${name}'. The page is at /console.`);
    const { body, type, etag } = file;
    if (request.headers["if-none-match"]?.includes(etag)) return { status: 304, headers: { ...pageHeaders, etag } };
    return { body, headers: { ...pageHeaders, "content-type": type, etag } };
  };
  return [
    { method: "GET", path: "/console", doors: [], handle },
    // The page's links start one level up, so that a proxy may serve it under a path of its own.
    {
      method: "GET",
      path: "/console/",
      doors: [],
      handle: () => ({ status: 308, headers: { location: "../console" } }),
    },
    { method: "GET", path: "/console/*", doors: [], handle },
  ];
}

/** Leads a browser from the gateway's bare address to the page; for any other client that is an unknown URL. */
export function leadToConsole({ request: { method, url, headers }, settings }: Call): Result | undefined {
  if (url !== "/" || !settings.hasConsole || (method !== "GET" && method !== "HEAD")) return undefined;
  return headers.accept?.includes("text/html") ? { status: 307, headers: { location: "console" } } : undefined;
}

const page = "index.html";

/** Only this origin may be run, shown or requested, whatever a message tries. */
const pageHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
};

type Files = ReadonlyMap<string, { readonly body: Buffer; readonly type: string; readonly etag: string }>;

/** By name, so that no other file can be asked for. */
async function readFiles(folder: URL): Promise<Files> {
  const names = (await readdir(folder)).filter((name) => types[extname(name)] !== undefined);
  const files = names.map(async (name) => {
    const body = await readFile(new URL(name, folder));
    const etag = `"${hash("sha256", body, "base64url").slice(0, 22)}"`;
    return [name, { body, type: types[extname(name)] ?? "", etag }] as const;
  });
  return new Map(await Promise.all(files));
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
};
