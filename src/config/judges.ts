/** What texts of the config file must be like: addresses, tokens, headers, times, the store. */
import { isIP } from "node:net";
import type { Judge } from "./form.ts";

/** Allows what fits. */
export function matching(pattern: RegExp, allowed: string): Judge {
  return (text) => (pattern.test(text) ? undefined : `allowed: ${allowed}`);
}

export const isFilled = matching(/./s, "a string that is not empty");

/** What HTTP cannot send is told at the start, not by failing turns. */
export const isHeader = matching(
  /^([\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/,
  'what a header can carry: one line of Latin-1 without blanks or line ends around it; {"file": "…"} ignores those',
);

export const isToken = matching(
  /^[\x21-\x7e]+$/,
  "a long random token (`portico token make` makes one): what a header can carry, a line of visible ASCII characters",
);

/** Which ones there are, the rules know. */
export const isAdapterName: Judge = () => undefined;

export const isDigest = matching(/^[\da-f]{64}$/i, "64 hexadecimal digits");

export const isAddress: Judge = (bind) => {
  const isSocket = bind.startsWith("unix:");
  // A system stores a path in 108 bytes, with a zero at the end.
  const pathBytes = Buffer.byteLength(bind) - "unix:".length;
  const isRight = isSocket ? pathBytes >= 1 && pathBytes <= 107 : bind === "localhost" || isIP(bind) !== 0;
  const allowed = 'an IPv4 or IPv6 address, "0.0.0.0", "::", "localhost", or "unix:" and a path of at most 107 bytes';
  return isRight ? undefined : `allowed: ${allowed}`;
};

/** Whether only programs on this machine can reach it. */
export function isLoopback(bind: string): boolean {
  return bind.startsWith("unix:") || bind === "localhost" || bind === "::1" || bind.startsWith("127.");
}

/** An address, or a network of them. */
export const isNetwork: Judge = (text) => {
  const [address = "", prefix = "0", ...rest] = text.split("/");
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  const isRight = rest.length === 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= most;
  return isRight ? undefined : 'allowed: an IPv4 or IPv6 address, or a network like "10.1.0.0/16" or "fd00:1::/32"';
};

/** Whoever connects to the unix socket has no address. */
export const isProxy: Judge = (text) => (text === "unix" ? undefined : isNetwork(text));

export const isOrigin: Judge = (text) => {
  const isRight = /^https?:/.test(text) && URL.parse(text)?.origin === text;
  return isRight ? undefined : 'allowed: an exact origin like "https://app.example.com", without a path';
};

/** A server's address without credentials; the path of a request is added to it. */
export const isBaseUrl = matching(
  /^(?!(https?:\/\/[^?]*|unix:[^:]*:.*)\/(chat\/completions|responses)\/?(\?|$))(https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?(\?[^#\s]*)?|unix:\/[^:\s]+(:\/[^?#\s]*)?)$/,
  'a URL like "https://api.example.com/v1", without user or password and without /chat/completions or /responses at its end, or "unix:/path"',
);

export const isMoment: Judge = (text) => {
  // Otherwise `Date` would read 30 February as 2 March.
  const written = new Date(text).toJSON() ?? "";
  const isRight = text !== "" && [written, written.replace(".000", "")].includes(text);
  return isRight ? undefined : 'allowed: a moment that exists, in UTC, like "2030-01-31T00:00:00Z"';
};

const isKnownStore = matching(
  /^(sqlite:(?!:memory:).|postgres(ql)?:\/\/[^/]*\/[^/?#]+)/,
  '"sqlite:" and a file, or a database like "postgres://user:password@host:5432/name"',
);

export const isStore: Judge = (text) =>
  /^rediss?:/.test(text)
    ? 'Redis is no longer a store; start with a new SQLite file: write "sqlite:" and its path'
    : isKnownStore(text);
