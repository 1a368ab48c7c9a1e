/** Fetches a caller's URL for models that need the bytes, without reaching into the operator's own network. */
import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { type LookupFunction, isIP } from "node:net";
import { Agent, type Dispatcher, buildConnector, request } from "undici";
import { callerLeft, GatewayError } from "../../core/errors.ts";
import { createGathering } from "../gathering.ts";
import { headerOf } from "../http/upstream.ts";
import { type Media, type MediaLimits, readType, refuseMedia, tooLarge } from "./limits.ts";
import { createReach } from "./reach.ts";

const maxRedirects = 3;

/** `lookup` resolves names; by default the system's. */
export async function fetchMedia(
  url: string,
  limits: MediaLimits,
  signal: AbortSignal,
  lookup: LookupFunction = systemLookup,
): Promise<Media> {
  const { timeoutMs } = limits;
  const deadline = AbortSignal.timeout(timeoutMs);
  let hop = readUrl(url, limits);
  const agent = createAgent(limits, lookup, timeoutMs);
  try {
    for (let redirects = 0; ; redirects++) {
      const answer = await request(hop, {
        dispatcher: agent,
        headers: { accept: "image/*, audio/*, text/*, application/pdf", "user-agent": "portico" },
        signal: AbortSignal.any([signal, deadline]),
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      const location = redirectOf(answer);
      if (location === undefined) return await readMedia(answer, hop.host, limits);
      if (redirects === maxRedirects) throw refuseMedia(hop.host, "redirects too often", limits);
      hop = readUrl(location, limits, hop.href);
    }
  } catch (thrown) {
    if (signal.aborted) throw callerLeft();
    if (deadline.aborted) throw refuseMedia(hop.host, `did not send it within ${timeoutMs} ms`, limits);
    if (thrown instanceof GatewayError) throw thrown;
    throw refuseMedia(hop.host, "cannot be reached", limits, thrown);
  } finally {
    await agent.destroy();
  }
}

function readUrl(text: string, limits: MediaLimits, from?: string): URL {
  if (!URL.canParse(text, from)) throw refuseMedia("it", "is not a URL", limits);
  const url = new URL(text, from);
  const where = url.host === "" ? "its URL" : url.host;
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refuseMedia(where, "must be fetched over http or https", limits);
  }
  if (url.username !== "" || url.password !== "") {
    throw refuseMedia(where, "must be given without a user or password", limits);
  }
  return url;
}

/** One connection for each hop, so that each address is checked; no proxy, which would hide it. */
function createAgent(limits: MediaLimits, lookup: LookupFunction, connectMs: number): Agent {
  const reaches = createReach(limits.allowPrivate);
  const refuse = (host: string) => refuseMedia(host, "is not a public internet address", limits);

  /** Its result is what is connected to: the name is not resolved a second time. */
  const guarded: LookupFunction = (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, []);
      const addresses: readonly LookupAddress[] = Array.isArray(found)
        ? found
        : [{ address: found, family: isIP(found) }];
      const [first] = addresses;
      if (first === undefined || !addresses.every(({ address }) => reaches(address))) {
        return callback(refuse(hostname), []);
      }
      if (options.all === true) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    });
  };

  const connect = buildConnector({ allowH2: false, timeout: connectMs, lookup: guarded });
  return new Agent({
    allowH2: false,
    pipelining: 0,
    connect(options, callback) {
      const host = options.hostname.replace(/^\[(.*)\]$/, "$1");
      // An address is not looked up.
      if (isIP(host) !== 0 && !reaches(host)) callback(refuse(options.hostname), null);
      else connect(options, callback);
    },
  });
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

function redirectOf(answer: Dispatcher.ResponseData): string | undefined {
  return redirectStatuses.has(answer.statusCode) ? headerOf(answer, "location") : undefined;
}

async function readMedia(answer: Dispatcher.ResponseData, where: string, limits: MediaLimits): Promise<Media> {
  const { statusCode, body } = answer;
  const { maxBytes } = limits;
  if (statusCode !== 200) throw refuseMedia(where, `answered with status ${statusCode}`, limits);
  const type = readType(headerOf(answer, "content-type") ?? "", where, limits);
  if ((headerOf(answer, "content-encoding") ?? "identity") !== "identity") {
    throw refuseMedia(where, "sends it compressed, although that was not requested", limits);
  }
  if (Number(headerOf(answer, "content-length") ?? 0) > maxBytes) throw tooLarge(where, limits);
  const gathered = createGathering();
  for await (const piece of body as AsyncIterable<Buffer>) {
    gathered.add(piece);
    if (gathered.size() > maxBytes) throw tooLarge(where, limits);
  }
  // A copy of its own: what others make of its memory must not show what is behind it.
  return { bytes: new Uint8Array(gathered.take()), type };
}
