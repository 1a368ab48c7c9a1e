/** Says why Redis cannot be used now, and what helps. */
import { GatewayError, messageOf } from "../../core/errors.ts";
import { unavailable } from "../refusals.ts";

/** Throws our scripts' refusals as they are, all else as errors that the store's callers know. */
export async function explain<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (thrown) {
    throw ownRefusals.has(codeOf(thrown)) ? thrown : toRefusal(thrown);
  }
}

export function toRefusal(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  return codeOf(thrown) === "" ? unreachable(thrown) : cannotUse(thrown);
}

/** Strangers read it at `/readyz`, so it does not name the server; its cause is for the log. */
function cannotUse(thrown: unknown): GatewayError {
  const reason = troubles.get(codeOf(thrown)) ?? (isScriptError(thrown) ? dataMissing : unknownTrouble);
  return unavailable(`The session store cannot be used now: ${reason}`, thrown);
}

/** One of our scripts did not find what should be there. */
function isScriptError(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.message.startsWith("ERR user_script:");
}

/** Redis had just stored the lease, and has lost it again. */
export function evicted(cause: unknown): GatewayError {
  const reason = `Redis is out of memory and evicts the gateway's keys. ${noEviction}, and give it more memory.`;
  return unavailable(`The session store cannot be used now: ${reason}`, cause);
}

export function unreachable(cause?: unknown): GatewayError {
  const message = `The session store cannot be used now: Redis cannot be reached. ${itGoesOn} once it can be.`;
  return unavailable(message, cause);
}

/** At the start, for the operator alone. A deliberate refusal is thrown as it is. */
export function cannotOpen(thrown: unknown, shown: string): GatewayError {
  if (thrown instanceof GatewayError && thrown.cause === undefined) return thrown;
  const cause = thrown instanceof GatewayError ? thrown.cause : thrown;
  const passing = passingTroubles.get(codeOf(cause));
  const reason = passing ?? messageOf(cause).trim().replace(/\.$/, "");
  const remedy = passing === undefined ? `${toRemedy(cause)} (gateway.sessions.store)` : "Try again in a moment";
  const message = `The session store ${shown} cannot be opened: ${reason}. ${remedy}.`;
  return new GatewayError("store_unavailable", message, { cause });
}

function toRemedy(cause: unknown): string {
  const code = (cause instanceof Error && "code" in cause && cause.code) || codeOf(cause);
  return remedies.find(([pattern]) => pattern.test(String(code)))?.[1] ?? usualRemedy;
}

/** The first that matches a code of Redis or TLS. */
const remedies: readonly (readonly [pattern: RegExp, remedy: string])[] = [
  [/^OOM$/, "Give Redis more memory, or name another server"],
  [/^READONLY$/, "Name the primary"],
  [/^WRONGTYPE$/, "Another program has keys there that begin alike: name a prefix of your own with ?prefix=NAME"],
  [/^NOPERM$/, "Give its user its keys, its channels and all commands that are not dangerous"],
  [
    /^ERR_SSL_.*CERTIFICATE/,
    "Redis asks for a certificate of the gateway's, which has none: set `tls-auth-clients no` in it",
  ],
  [
    /CERT|SIGNATURE/,
    "Check the certificate of Redis; the environment variable NODE_EXTRA_CA_CERTS names a file with an authority of your own",
  ],
];

const usualRemedy = "Check that Redis runs there, whether it speaks TLS (rediss://), and the name and password";

export function noAnswer(ms: number): Error {
  return new Error(`Redis has not answered for ${ms} ms.`);
}

/** It was sent, with unknown result. A primary that becomes a replica tells those who wait for copies, and hangs up. */
export function isLost(thrown: unknown): boolean {
  return !(thrown instanceof GatewayError) && ["", "UNBLOCKED"].includes(codeOf(thrown));
}

/** The first word of a refusal by Redis. */
export function codeOf(thrown: unknown): string {
  return thrown instanceof Error ? (/^[A-Z]{2,}\b/.exec(thrown.message)?.[0] ?? "") : "";
}

/** The codes of our scripts' refusals. */
const ownRefusals = new Set(["KEPT", "REKEY", "BEHIND"]);

const itGoesOn = "The gateway continues by itself";
const credentials =
  "Redis rejects the gateway's user name or password. Check gateway.sessions.store and the server's users.";
const unknownTrouble = "the gateway's log has the cause. Try again in a moment.";

const noEviction = "Set `maxmemory-policy noeviction` in Redis";
const dataMissing = `some of its data is missing, as after Redis has evicted keys. ${noEviction}, and import an archive into an empty store.`;

const moving = "the Redis cluster is moving data to another node";
const passingTroubles = new Map<string, string>([
  ["ASK", moving],
  ["BUSY", "Redis is busy with someone else's script"],
  ["CLUSTERDOWN", "the Redis cluster is down"],
  ["LOADING", "Redis is still loading its data"],
  ["TRYAGAIN", moving],
]);

const troubles = new Map<string, string>([
  ...[...passingTroubles].map(([code, what]) => [code, `${what}. ${itGoesOn} when that is over.`] as const),
  ["MASTERDOWN", `Redis has lost its primary. ${itGoesOn} once it is back.`],
  ["MISCONF", `Redis cannot write to its disk. ${itGoesOn} once it can.`],
  [
    "MOVED",
    `the cluster node that holds the data cannot be reached. ${itGoesOn} once it can be, or another node takes over.`,
  ],
  ["NOAUTH", credentials],
  ["NOLEASE", `the gateway was disconnected from Redis for too long. ${itGoesOn} in a moment.`],
  ["NOPERM", "Redis does not grant the gateway's user what it needs. Allow it all commands on its keys and channels."],
  ["NOREPLICAS", `too few Redis replicas have what was written. ${itGoesOn} once they are back.`],
  ["OOM", `Redis is out of memory. ${itGoesOn} once there is room again.`],
  ["READONLY", `Redis is a read-only replica. ${itGoesOn} once it is the primary; or name the primary instead.`],
  ["WRONGPASS", credentials],
]);
