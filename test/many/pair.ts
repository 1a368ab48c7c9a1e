/** Two gateways on one database, as two processes have it. */
import { after } from "node:test";
import { type Gateway, openGateway, type Options, type Scope, type Script } from "../harness/house.ts";
import { newDatabase } from "../harness/postgres.ts";

export interface Pair {
  readonly one: Gateway;
  readonly other: Gateway;
  /** The address of the database. */
  readonly store: string;
  /** What the models of both say from now on. */
  play(script: Script): void;
}

export async function openPair(scope: Scope, options: Options = {}): Promise<Pair> {
  const store = await newDatabase(scope);
  const { sessions = {}, ...gateway } = { ...options.gateway } as { readonly sessions?: object };
  const both = { ...options, gateway: { ...gateway, sessions: { ...sessions, store } } };
  const one = await openGateway(scope, both);
  const other = await openGateway(scope, both);
  const play = (script: Script): void => {
    for (const { model } of [one, other]) model.script = script;
  };
  return { one, other, store, play };
}

/** One pair for all tests of a file, opened by the first that asks for it. */
export function sharePair(options: Options = {}): () => Promise<Pair> {
  const ends: (() => unknown)[] = [];
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  let opened: Promise<Pair> | undefined;
  return () => (opened ??= openPair({ after: (end) => void ends.push(end) }, options));
}
