/** Fetches a caller's URL for models that need the bytes, without reaching into the operator's own network. */
import { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector, type Dispatcher, request } from "undici";
import { GatewayError } from "../../core/errors.ts";
import { headerOf } from "../http/failure.ts";
import { checkSize, type Media, type MediaRules, readType, refuseMedia } from "./media.ts";

const maxRedirects = 3;
const headers = { accept: "image/*, audio/*, text/*, application/pdf", "user-agent": "portico" };

export async function fetchMedia(url: string, rules: MediaRules, caller: AbortSignal): Promise<Media> {
  const deadline = AbortSignal.timeout(rules.timeout_ms);
  const signal = AbortSignal.any([caller, deadline]);
  const dispatcher = createAgent(rules);
  let hop = readUrl(url);
  try {
    for (let redirects = 0; redirects <= maxRedirects; redirects++) {
      const answer = await request(hop, { dispatcher, headers, signal });
      if (answer.statusCode < 300 || answer.statusCode > 399) return await readMedia(answer, hop.host, rules);
      hop = readUrl(headerOf(answer.headers, "location"), hop.href);
    }
    throw refuseMedia(hop.host, "redirects too often");
  } catch (thrown) {
    caller.throwIfAborted();
    if (deadline.aborted) throw refuseMedia(hop.host, `did not send it within ${rules.timeout_ms} ms`);
    throw thrown instanceof GatewayError ? thrown : refuseMedia(hop.host, "cannot be reached", thrown);
  } finally {
    await dispatcher.destroy();
  }
}

function readUrl(text: string, from?: string): URL {
  const url = URL.parse(text, from);
  if (url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "") return url;
  throw refuseMedia(url?.host || "it", "must be a URL with http or https, without a user or password");
}

/** One connection for each hop, so that each address is checked; no proxy, which would hide it. */
function createAgent({ allow_private, timeout_ms: timeout }: MediaRules): Agent {
  const reaches = createReach(allow_private);

  /** What it finds is what is connected to: the name is not resolved a second time. */
  const guarded: LookupFunction = (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const isReached = addresses?.length > 0 && addresses.every(({ address }) => reaches(address));
      callback(error ?? (isReached ? null : refuseAddress(hostname)), isReached ? addresses : []);
    });
  };

  const connect = buildConnector({ allowH2: false, timeout, lookup: guarded, autoSelectFamily: true });
  return new Agent({
    allowH2: false,
    pipelining: 0,
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

async function readMedia(answer: Dispatcher.ResponseData, where: string, rules: MediaRules): Promise<Media> {
  const { statusCode, body } = answer;
  if (statusCode !== 200) throw refuseMedia(where, `answered with status ${statusCode}`);
  const type = readType(headerOf(answer.headers, "content-type"), where);
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    size += piece.length;
    checkSize(size, where, rules);
    pieces.push(piece);
  }
  return { bytes: Buffer.concat(pieces), type };
}

/** Whether an address, as connected to, is on the public internet, or one that the operator adds. */
function createReach(allowPrivate: readonly string[]): (address: string) => boolean {
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
