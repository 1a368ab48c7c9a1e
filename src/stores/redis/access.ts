/** What all parts of the Redis store share: reading and writing, its secrets, and its cache. */
import { GatewayError } from "../../core/errors.ts";
import { createKeyedHash } from "../hash.ts";
import type { Outcome } from "../check.ts";
import { type Recent, createRecent } from "../recent.ts";
import { storeClosed } from "../refusals.ts";
import type { Address } from "./address.ts";
import type { Connection } from "./connection.ts";
import type { Lease } from "./lease.ts";
import type { Reply, Script } from "./script.ts";
import { codeOf } from "./trouble.ts";
import { prepareStore } from "./schema.ts";

export interface Access {
  readonly now: () => Date;
  readonly recent: Recent;
  readonly outcome: Outcome;
  read(script: Script, ...args: readonly string[]): Promise<Reply>;
  /** Runs a script whose first argument is the lease. */
  write(script: Script, args: readonly string[], lost?: Lost): Promise<Reply>;
  send(...command: readonly string[]): Promise<Reply>;
  /** Recreates the store if it is gone. */
  prepare(): Promise<unknown>;
  /** The store's own secret for seals, created on first use. */
  readSeal(): Promise<string>;
  /** The Redis key of a name. */
  key(name: string): string;
  /**
   * Forgets what others may have changed, by the count of changes in a reply. False if the reply is older than a change
   * that is known already: then it must not be cached.
   */
  seeChanges(count: Reply | undefined): boolean;
  /** The count as last seen. */
  changesSeen(): number;
  /** A reply in this round of the event loop had the count of changes: asking again would tell the same. */
  isFresh(): boolean;
  /** The same after our own change, which affected only these turns, or all. */
  noteChange(count: Reply | undefined, turnIds?: readonly string[]): boolean;
  /**
   * Forgets everything: a server that restarted, or replaced another, may lack the last changes. Nor does the last
   * connection tell whether it keeps what is written.
   */
  forget(): void;
  /** When that was, by the process's own clock. */
  resetAt(): number;
  /** Runs work with the key of hints, and once more if the key has changed meanwhile. */
  withHints<T>(work: (hash: TextHash, key: string) => Promise<T>): Promise<T>;
  /** The same with the key of idempotency keys and of the gateways' names, for a script that checks it. */
  withKeys<T>(work: (hash: TextHash, key: string) => Promise<T>): Promise<T>;
  readonly hashKey: TextHash;
  /** From now on everything is refused. */
  close(): void;
  isOpen(): boolean;
}

/** What to do if a script may have run, as the connection was lost before the reply, or if its writes may not last. */
interface Lost {
  /** The arguments for the next connection, if that comes soon. */
  readonly retryArgs: readonly string[];
  /** That failed too, or too few replicas have it. */
  readonly abandon: () => void;
}

type TextHash = (owner: string, words: string) => string;

export async function createAccess(
  connection: Connection,
  lease: Lease,
  address: Address,
  now: () => Date,
  maxRecentSize: number | undefined,
): Promise<Access> {
  const recent = createRecent(maxRecentSize);
  const outcome: Outcome = {};
  let open = true;
  let resetAt = -Infinity;
  const prepare = (...names: readonly string[]) => prepareStore(read, address.shown, names);
  let { hints, keys, seen } = await readKeys();
  let fresh: NodeJS.Immediate | undefined;

  function checkOpen(): void {
    if (!open) throw storeClosed();
  }

  async function read(script: Script, ...args: readonly string[]): Promise<Reply> {
    checkOpen();
    return connection.run(script, args);
  }

  async function readKeys() {
    const [changes, hint = "", idempotency = ""] = await prepare("hint", "idempotency");
    return { hints: toKeyed(hint), keys: toKeyed(idempotency), seen: Number(changes) };
  }

  /** The secrets change when an archive is imported or Redis comes back empty; then nothing cached is valid. */
  async function retryWithNewKeys<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (thrown) {
      if (codeOf(thrown) !== "REKEY") throw thrown;
      ({ hints, keys, seen } = await readKeys());
      recent.clear();
      return work();
    }
  }

  return {
    now,
    recent,
    outcome,
    key: (name) => `${address.keyPrefix}${name}`,
    prepare: readKeys,
    async readSeal() {
      const [, seal = ""] = await prepare("secret:seal");
      return seal;
    },
    read,
    async write(script, args, lost) {
      checkOpen();
      const { retryArgs = args, abandon } = lost ?? {};
      const toArgs = (mayBeDone: boolean) => [lease.fence(), ...(mayBeDone ? retryArgs : args)];
      try {
        const done = await connection.runDurably(script, { toArgs, retake: lease.retake, abandon });
        // A script that changed nothing proves nothing.
        if (done !== 0 && done !== null) outcome.storedAt = now();
        return done;
      } catch (thrown) {
        if (thrown instanceof GatewayError) outcome.failure = { at: now(), error: thrown };
        throw thrown;
      }
    },
    async send(...command) {
      checkOpen();
      return connection.send(command);
    },
    isFresh: () => open && fresh !== undefined,
    seeChanges(count) {
      fresh ??= setImmediate(() => (fresh = undefined));
      const current = Number(count ?? 0);
      if (current > seen) {
        seen = current;
        recent.clear();
      }
      return current === seen;
    },
    changesSeen: () => seen,
    noteChange(count, turnIds) {
      const current = Number(count ?? 0);
      if (turnIds === undefined || current > seen + 1) recent.clear();
      else recent.forget(turnIds);
      seen = Math.max(seen, current);
      return current === seen;
    },
    forget() {
      seen = 0;
      recent.clear();
      delete outcome.storedAt;
      delete outcome.failure;
      resetAt = performance.now();
    },
    resetAt: () => resetAt,
    withHints: (work) => retryWithNewKeys(() => work(hints.hash, hints.key)),
    withKeys: (work) => retryWithNewKeys(() => work(keys.hash, keys.key)),
    hashKey: (owner, words) => keys.hash(owner, words),
    close() {
      open = false;
    },
    isOpen: () => open,
  };
}

interface Keyed {
  readonly key: string;
  readonly hash: TextHash;
}

function toKeyed(key: string): Keyed {
  const hash = createKeyedHash(Buffer.from(key, "base64url"));
  return { key, hash: (owner, words) => hash(owner, words).toString("base64url") };
}
