/** Which addresses a caller's URL may reach: the public internet, and what the operator adds. */
import { BlockList, isIP } from "node:net";

/** Checks an address, as connected to. */
export function createReach(allowPrivate: readonly string[]): (address: string) => boolean {
  const added = toList(allowPrivate);
  return (address) => {
    const [bare = ""] = address.split("%", 1);
    const family = familyOf(bare);
    if (family === undefined) return false;
    if (added.check(bare, family)) return true;
    // An IPv6 address that embeds one of IPv4 could lead to a special one.
    return !special.check(bare, family) && (family === "ipv4" || globalUnicast.check(bare, family));
  };
}

function familyOf(address: string): "ipv4" | "ipv6" | undefined {
  const version = isIP(address);
  return version === 0 ? undefined : version === 4 ? "ipv4" : "ipv6";
}

function toList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    const family = familyOf(address) ?? "ipv4";
    list.addSubnet(address, Number(prefix ?? (family === "ipv4" ? 32 : 128)), family);
  }
  return list;
}

const globalUnicast = toList(["2000::/3"]);

/** IANA's special-purpose registries: private, shared, loopback, link-local, documentation, multicast, reserved … */
const special = toList(
  [
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24",
    "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4",
    // Teredo and 6to4, which carry IPv4, and documentation.
    "2001::/23 2001:db8::/32 2002::/16 3fff::/20",
  ].flatMap((line) => line.split(" ")),
);
