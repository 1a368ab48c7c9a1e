/** Serves the console: static files, sent as they are. They contain no secret, so they need no token. */
import { hash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { makeOnce } from "../core/lazy.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";

/**
 * Sends the page for `GET /console`, and its files for `GET /console/{file}`. They are read on the first request, so
 * that no start waits for them, and kept.
 */
export function createConsole() {
  const reading = makeOnce(readFiles);
  return async (request: HttpRequest, reply: HttpReply): Promise<HttpReply> => {
    if (!request.terms.console) {
      throw new GatewayError(
        "endpoint_disabled",
        'The console is disabled. The operator can enable it with "gateway.http.console": true.',
      );
    }
    const { rest: name = page } = request.params as { readonly rest?: string };
    // The page's links start one level up, so that a proxy may serve it under a path of its own.
    if (name === "") return reply.code(308).header("location", "../console").send();
    const file = (await reading()).get(name);
    if (file === undefined) {
      throw new GatewayError("unknown_url", `The console has no file '${name}'. The page is at /console.`);
    }
    reply.set({ ...pageHeaders, "content-type": file.type, etag: file.etag });
    if (request.headers["if-none-match"]?.includes(file.etag)) return reply.code(304).send();
    return reply.send(file.body);
  };
}

/**
 * Leads a browser from the gateway's bare address to the page, and returns whether it did. For any other client that
 * address is an unknown URL.
 */
export function leadToConsole({ method, url, headers, terms }: HttpRequest, reply: HttpReply): boolean {
  if (url !== "/" || !terms.console) return false;
  const isBrowser = headers.accept?.includes("text/html") === true;
  if (!isBrowser || (method !== "GET" && method !== "HEAD")) return false;
  // Relative, so that a proxy may serve it under a path of its own.
  reply.code(307).header("location", "console").send();
  return true;
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

/** By name, so that no other file can be requested. */
async function readFiles(): Promise<Files> {
  const folder = new URL("../console/", import.meta.url);
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
