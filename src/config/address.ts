/** Reads the address of a listener, and those of proxies in front of it. */
import { isIP } from "node:net";

const allowed = 'an IPv4 or IPv6 address, "0.0.0.0", "::", "localhost", or "unix:" and a path';

/** What is allowed instead of the address, and what is wrong with it; undefined if it is right. */
export function judgeAddress(bind: string): string | undefined {
  const fault = faultOf(bind);
  return fault === "" ? allowed : fault && `${allowed} (${fault})`;
}

/** Empty if it is merely not allowed, undefined if it is right. */
function faultOf(bind: string): string | undefined {
  if (bind.startsWith("unix:")) return faultOfSocket(bind.slice("unix:".length));
  if (bind === "localhost" || isIP(bind) !== 0) return undefined;
  const bracketed = /^\[(.*)\](:\d+)?$/.exec(bind);
  if (bracketed?.[1] !== undefined && isIP(bracketed[1]) === 6) return `write it without brackets: "${bracketed[1]}"`;
  if (/^[^:]*:\d+$/.test(bind)) return "the port belongs in gateway.http.port";
  return "";
}

const allowedProxies = 'an IPv4 or IPv6 address, a network like "10.1.0.0/16" or "fd00:1::/32", or "unix"';

/** The same for a proxy, or a network of them. */
export function judgeProxy(proxy: string): string | undefined {
  if (proxy === "unix") return undefined;
  const [, address = proxy, prefix] = /^(.*)\/(.*)$/.exec(proxy) ?? [];
  const family = isIP(address);
  if (family === 0) return allowedProxies;
  const most = family === 4 ? 32 : 128;
  if (prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= most)) return undefined;
  return `${allowedProxies} (after the slash, a number from 0 to ${most})`;
}

/** Whether only programs on this machine can reach it. */
export function isLoopback(bind: string): boolean {
  return bind.startsWith("unix:") || bind === "localhost" || bind === "::1" || /^(::ffff:)?127\./i.test(bind);
}

/** The operating system stores a socket's path in 108 bytes, with a zero at the end. */
function faultOfSocket(path: string): string | undefined {
  if (path === "") return "the path is missing";
  return Buffer.byteLength(path) > 107 ? "the path is longer than 107 bytes" : undefined;
}
