/**
 * Finds the server that has the store: the one that was named, or the node of a cluster that has the slot of its keys.
 *
 * A store is in one slot, so a cluster is only another way to find an address. The library's own cluster client is not
 * used: it follows ASK, so while a slot is being moved, a script would run where only a part of the store is.
 */
import { GatewayError, messageOf } from "../../core/errors.ts";
import { type Address, type Place, nameOf } from "./address.ts";
import type { Client, MakeClient } from "./client.ts";
import { createDeadline } from "./deadline.ts";
import { type Reply, toList } from "./script.ts";
import { codeOf, noAnswer } from "./trouble.ts";

export interface Servers {
  /** Asks all known servers, one after the other, until one has the store. Throws why none has. */
  find(): Promise<Found>;
  /** Follows a node that no longer has the store. */
  follow(moved: unknown): void;
}

export interface Found {
  readonly client: Client;
  readonly place: Place;
}

/** `timeoutMs` is how long a server may be silent. */
export function createServers(address: Address, makeClient: MakeClient, timeoutMs: number): Servers {
  const key = `${address.keyPrefix}version`;
  /** All nodes of the cluster, as the last one asked knew them. */
  let nodes: readonly Place[] = [];
  let latest: Place | undefined;

  async function ask(place: Place, waitMs: number): Promise<Client> {
    const client = makeClient(place);
    let isLate = false;
    const deadline = createDeadline(waitMs, () => {
      isLate = true;
      client.destroy();
    });
    client.on("connect", deadline.renew);
    try {
      await client.connect();
      await look(client, place);
      return client;
    } catch (thrown) {
      client.destroy();
      if (isNoDatabase(thrown)) throw onlyOneDatabase(address);
      throw isLate ? noAnswer(waitMs) : thrown;
    } finally {
      deadline.stop();
    }
  }

  /** Every node knows which one has a key. Whatever else a server refuses, it refuses again when it is used. */
  async function look(client: Client, place: Place): Promise<void> {
    const [slots, found] = await Promise.allSettled([
      client.sendCommand(["CLUSTER", "SLOTS"]),
      client.sendCommand(["EXISTS", key]),
    ]);
    if (slots.status === "fulfilled") nodes = readNodes(slots.value as unknown as Reply, place.host);
    else if (address.places.length > 1 && isNoCluster(slots.reason)) throw notClustered(address, place);
    if (found.status === "rejected" && notHere.has(codeOf(found.reason))) throw found.reason;
  }

  return {
    async find() {
      const known = [...(latest === undefined ? [] : [latest]), ...address.places, ...nodes];
      // If others can be asked, one that is away must not use up all the time.
      const waitMs = new Set(known.map(nameOf)).size === 1 ? timeoutMs : timeoutMs / 4;
      const asked = new Set<string>();
      const troubles: { ofLed?: Error; ofKnown?: unknown; moved?: unknown } = {};
      const line = [...known];
      for (let place = line.shift(); place !== undefined; place = line.shift()) {
        if (asked.has(nameOf(place))) continue;
        asked.add(nameOf(place));
        try {
          const client = await ask(place, waitMs);
          latest = place;
          return { client, place };
        } catch (thrown) {
          if (isFinalRefusal(thrown)) throw thrown;
          const next = whereTo(thrown, place.host);
          if (next !== undefined) line.unshift(next);
          if (codeOf(thrown) === "MOVED") troubles.moved = thrown;
          else if (codeOf(thrown) === "" && !known.includes(place)) troubles.ofLed = nodeAway(place, thrown);
          else troubles.ofKnown = thrown;
        }
      }
      // The most telling first: the trouble with a node to which others led.
      throw troubles.ofLed ?? troubles.ofKnown ?? troubles.moved;
    },
    follow(moved) {
      latest = whereTo(moved, latest?.host ?? "") ?? latest;
    },
  };
}

/** While a store is opened, such a refusal is final. */
export function isFinalRefusal(thrown: unknown): boolean {
  return thrown instanceof GatewayError || finalRefusals.has(codeOf(thrown));
}

const finalRefusals = new Set(["NOAUTH", "WRONGPASS", "NOPERM"]);

/** It does not have the store, or not now; or the connection is gone. */
const notHere = new Set(["MOVED", "CLUSTERDOWN", "LOADING", ""]);

/** `MOVED <slot> <host>:<port>`; a node that does not know its own host means the one it was reached by. */
function whereTo(thrown: unknown, host: string): Place | undefined {
  const [, told = "", port] = /^MOVED \d+ (.*):(\d+)$/.exec(thrown instanceof Error ? thrown.message : "") ?? [];
  return port === undefined ? undefined : { host: isUnknownHost(told) ? host : told, port: Number(port) };
}

/** Ranges of slots, each followed by its nodes. */
function readNodes(slots: Reply, host: string): readonly Place[] {
  const found = toList(slots).flatMap((range) => toList(range).slice(2));
  return found.map((node) => {
    const [told, port] = toList(node);
    return { host: typeof told !== "string" || isUnknownHost(told) ? host : told, port: Number(port) };
  });
}

function isUnknownHost(told: string): boolean {
  return told === "" || told === "?";
}

function isNoCluster(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.message.includes("cluster support disabled");
}

function isNoDatabase(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.message.includes("SELECT is not allowed in cluster mode");
}

function nodeAway(place: Place, cause: unknown): Error {
  const why = `the node ${nameOf(place)}, which the cluster points to, cannot be reached (${messageOf(cause)})`;
  return new Error(why, { cause });
}

function onlyOneDatabase({ shown, database }: Address): GatewayError {
  return new GatewayError(
    "store_unavailable",
    `The session store ${shown} cannot be opened: it is in a cluster, which has only database 0. Leave out /${database}; ?prefix=NAME keeps stores apart (gateway.sessions.store).`,
  );
}

function notClustered({ shown }: Address, place: Place): GatewayError {
  return new GatewayError(
    "store_unavailable",
    `The session store ${shown} cannot be opened: ${nameOf(place)} is not a cluster node, and only nodes of one cluster can be listed together. Name one server (gateway.sessions.store).`,
  );
}
