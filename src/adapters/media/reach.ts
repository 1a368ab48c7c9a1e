/** Which addresses a caller's URL may reach: the public internet, and what the operator adds. */
import { BlockList, isIP } from "node:net";

/** Checks an address, as connected to, against what is allowed. */
export function createReach(allowPrivate: boolean | readonly string[]): (address: string) => boolean {
  if (allowPrivate === true) return () => true;
  const added = toList(allowPrivate === false ? [] : allowPrivate);
  return (address) => {
    const [bare = ""] = address.split("%", 1);
    const family = familyOf(bare);
    return family !== undefined && (isPublic(bare, family) || added.check(bare, family));
  };
}

type Family = "ipv4" | "ipv6";

function isPublic(address: string, family: Family): boolean {
  if (family === "ipv4") return !special.check(address, family);
  // IPv6 addresses that embed an IPv4 one, mapped or translated, could lead back to a refused one.
  return globalUnicast.check(address, family) && !special.check(address, family);
}

function familyOf(address: string): Family | undefined {
  const version = isIP(address);
  return version === 4 ? "ipv4" : version === 6 ? "ipv6" : undefined;
}

function toList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    const family = familyOf(address);
    if (family === undefined) throw new Error(`'${network}' is neither an address nor a network like 10.1.0.0/16.`);
    list.addSubnet(address, prefix === undefined ? (family === "ipv4" ? 32 : 128) : Number(prefix), family);
  }
  return list;
}

const globalUnicast = toList(["2000::/3"]);

/**
 * IANA's special-purpose registries: this network, private, shared, loopback, link-local, documentation, benchmarks, …
 */
const special = toList([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  // Multicast, reserved, broadcast.
  "224.0.0.0/4",
  "240.0.0.0/4",
  // Teredo and 6to4, which carry IPv4, and documentation.
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
]);
