/** What texts of the config file must be like: addresses, tokens, headers, times, the store. */
import { isIP } from "node:net";
import type { Judge } from "./form.ts";

/** Allows what fits. */
export function matching(pattern: RegExp, allowed: string): Judge {
  return (text) => (pattern.test(text) ? undefined : `allowed: ${allowed}`);
}

export const isFilled = matching(/./s, "a string that is not empty");

/** A text that a header carries; what HTTP cannot send is told at the start, not by failing turns. */
export const isHeader: Judge = (text) => {
  if (/[\r\n]$/.test(text)) return 'it ends with a newline; remove it, or write {"file": "…"}, which ignores it';
  if (text.trim() !== text) return "it has whitespace around it; remove it";
  const isLatin = /^[\t\x20-\x7e\x80-\xff]*$/.test(text);
  return isLatin ? undefined : "no header can carry it: write it on one line, in Latin-1";
};

export const isToken: Judge = (text) => {
  if (text === "") return "allowed: a long random token (`portico token make` makes one)";
  const isOneWord = /^[\x21-\x7e]+$/.test(text);
  return isHeader(text) ?? (isOneWord ? undefined : "no header can carry it: allowed are visible ASCII characters");
};

export const isHeaderName: Judge = (name) => {
  if (ofTheConnection.has(name.toLowerCase())) return "it belongs to the connection, which the gateway manages";
  const isName = /^[\w!#$%&'*+.^`|~-]+$/.test(name);
  return isName ? undefined : "it is no header's name; allowed: letters, digits and !#$%&'*+-.^_`|~";
};

const ofTheConnection: ReadonlySet<string> = new Set(
  "connection content-length expect keep-alive transfer-encoding upgrade".split(" "),
);

const addresses = 'allowed: an IPv4 or IPv6 address, "0.0.0.0", "::", "localhost", or "unix:" and a path';

export const isAddress: Judge = (bind) => {
  if (!bind.startsWith("unix:")) return bind === "localhost" || isIP(bind) !== 0 ? undefined : addresses;
  const path = bind.slice("unix:".length);
  if (path === "") return "the path behind unix: is missing";
  // A system stores it in 108 bytes, with a zero at the end.
  return Buffer.byteLength(path) > 107 ? "the path is longer than 107 bytes" : undefined;
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
export const isProxy: Judge = (text) => {
  const fault = text === "unix" ? undefined : isNetwork(text);
  return fault && `${fault}, or "unix"`;
};

export const isOrigin: Judge = (text) => {
  const isRight = URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text;
  return isRight ? undefined : 'allowed: an exact origin like "https://app.example.com", without a path';
};

/** A server's address without credentials; the path of a request is added to it. */
export const isBaseUrl = matching(
  /^(?!(https?:\/\/[^?]*|unix:[^:]*:.*)\/(chat\/completions|responses)\/?(\?|$))(https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?(\?[^#\s]*)?|unix:\/[^:\s]+(:\/[^?#\s]*)?)$/,
  'a URL like "https://api.example.com/v1", without user or password and without /chat/completions or /responses at its end, or "unix:/path"',
);

/** `Date` would read 30 February as 2 March. */
export const isMoment: Judge = (text) => {
  const isWritten = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/.test(text);
  const day = Date.parse(`${text.slice(0, 10)}T00:00:00Z`);
  const exists = isWritten && !Number.isNaN(day) && new Date(day).toISOString().startsWith(text.slice(0, 10));
  const isRight = exists && !Number.isNaN(Date.parse(text));
  return isRight ? undefined : 'allowed: a date and time that exists, like "2030-01-31T00:00:00Z"';
};

const isSqlite = matching(/^sqlite:(?!:memory:)./, '"sqlite:" and a file');

/** Each store that is not there, with what to do; `sqlite:` and a file is the one that there is. */
const otherStores: readonly (readonly [RegExp, string])[] = [
  [/^memory:/, 'turns are always kept on disk, and `sessions.ttl` may be short; write "sqlite:" and a file'],
  [/^rediss?:/, 'Redis is no longer a store; write "sqlite:" and a file, and import there what was exported'],
  [/^postgres(ql)?:/, 'PostgreSQL is not a store yet; write "sqlite:" and a file, and run one gateway'],
];

export const isStore: Judge = (text) => otherStores.find(([form]) => form.test(text))?.[1] ?? isSqlite(text);
