/** Fetches a caller's URL for models that need the bytes, without reaching into the operator's own network. */
import { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector, interceptors, request } from "undici";
import { GatewayError } from "../../core/errors.ts";
import { headerOf } from "../http/failure.ts";
import { type Media, type MediaRules, readType, refuseMedia, tooLarge } from "./media.ts";

const headers = { accept: "image/*, audio/*, text/*, application/pdf", "user-agent": "portico" };
const maxRedirections = 3;

export async function fetchMedia(text: string, rules: MediaRules, caller: AbortSignal): Promise<Media> {
  const url = readUrl(text);
  const deadline = AbortSignal.timeout(rules.timeout_ms);
  const agent = createAgent(rules);
  try {
    const dispatcher = agent.compose(interceptors.redirect({ maxRedirections }));
    const answer = await request(url, { dispatcher, headers, signal: AbortSignal.any([caller, deadline]) });
    if (answer.statusCode !== 200) throw refuseMedia(url.host, `answered with status ${answer.statusCode}`);
    const type = readType(headerOf(answer.headers, "content-type"), url.host);
    return { bytes: new Uint8Array(await answer.body.arrayBuffer()), type };
  } catch (thrown) {
    caller.throwIfAborted();
    if (deadline.aborted) throw refuseMedia(url.host, `did not send it within ${rules.timeout_ms} ms`);
    if (Object(thrown).code === "UND_ERR_RES_EXCEEDED_MAX_SIZE") throw tooLarge(url.host, rules);
    throw thrown instanceof GatewayError ? thrown : refuseMedia(url.host, "cannot be reached", thrown);
  } finally {
    await agent.destroy();
  }
}

function readUrl(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "") return url;
  throw refuseMedia(url?.host || "it", "must be a URL with http or https, without a user or password");
}

/** One connection for each hop, so that each address is checked; no proxy, which would hide it. */
function createAgent(rules: MediaRules): Agent {
  const reaches = createReach(rules.allow_private);

  /** What it finds is what is connected to: the name is not resolved a second time. */
  const guarded: LookupFunction = (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const isReached = addresses?.length > 0 && addresses.every(({ address }) => reaches(address));
      callback(error ?? (isReached ? null : refuseAddress(hostname)), isReached ? addresses : []);
    });
  };

  const connect = buildConnector({ allowH2: false, lookup: guarded, autoSelectFamily: true });
  return new Agent({
    allowH2: false,
    pipelining: 0,
    maxResponseSize: rules.max_bytes,
    connect(options, callback) {
      const host = options.hostname.replace(/^\[(.*)\]$/, "$1");
      // An address is not looked up.
      if (isIP(host) !== 0 && !reaches(host)) callback(refuseAddress(host), null);
      else connect(options, callback);
    },
  });
}

function refuseAddress(host: string): GatewayError {
  return refuseMedia(host, "is not a public internet address");
}

/** Whether an address, as connected to, is on the public internet, or one that the operator adds. */
function createReach(allowPrivate: readonly string[]): (address: string) => boolean {
  const added = toList(allowPrivate);
  return (address) => {
    const family = familyOf(address);
    if (added.check(address, family)) return true;
    // An IPv6 address that embeds one of IPv4 could lead to a special one.
    return !special.check(address, family) && (family === "ipv4" || globalUnicast.check(address, family));
  };
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return address.includes(":") ? "ipv6" : "ipv4";
}

function toList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    const family = familyOf(address);
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
