/** The address of a caller: where its connection comes from or, if that is a trusted proxy, where the proxy says. */
import type { IncomingHttpHeaders } from "node:http";
import { BlockList, isIP, type Socket } from "node:net";
import type { HttpSettings } from "./settings.ts";

/** What tells the address of a request. */
interface Addressed {
  readonly headers: IncomingHttpHeaders;
  readonly socket: Pick<Socket, "remoteAddress">;
}

/** Undefined for a caller over a unix socket, and for one that has left. */
export type AddressOf = (request: Addressed) => string | undefined;

/**
 * Each proxy adds the address of its own peer at the end of `X-Forwarded-For`, behind whatever that peer sent. So the
 * list is read from its end, as long as the one who added an entry is trusted.
 */
export function createAddressOf({ trustedProxies, bind }: Pick<HttpSettings, "trustedProxies" | "bind">): AddressOf {
  const networks = toNetworks(trustedProxies.filter((proxy) => proxy !== "unix"));
  // A TCP connection that has ended has no address either.
  const trustsSocket = trustedProxies.includes("unix") && bind.startsWith("unix:");
  const isTrusted = (address: string | undefined) =>
    address === undefined ? trustsSocket : networks.check(address, familyOf(address));

  if (trustedProxies.length === 0) return ({ socket }) => socket.remoteAddress;
  return ({ socket, headers }) => {
    let address = socket.remoteAddress;
    const entries = headers["x-forwarded-for"]?.toString().split(",") ?? [];
    while (isTrusted(address)) {
      const next = readEntry(entries.pop());
      if (next === undefined) break;
      address = next;
    }
    return address;
  };
}

/** Some proxies add the port; then an IPv6 address is in brackets. */
function readEntry(entry = ""): string | undefined {
  const address = entry
    .trim()
    .replace(/^\[(.+)\](:\d+)?$/, "$1")
    .replace(/^([\d.]+):\d+$/, "$1");
  return isIP(address) === 0 ? undefined : address;
}

/** Also finds IPv4 addresses that are written as IPv6 ones. */
function toNetworks(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [address = "", prefix] = text.split("/");
    const family = familyOf(address);
    list.addSubnet(address, prefix === undefined ? (family === "ipv4" ? 32 : 128) : Number(prefix), family);
  }
  return list;
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 4 ? "ipv4" : "ipv6";
}
