/** Reads the URL of a Redis store. */

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
  /** Stands before every key, so that several stores can lie in one database. */
  readonly prefix: string;
  /** Without the password, to be told. */
  readonly shown: string;
}

const usualPort = 6379;
const usualPrefix = "portico";

/** `redis[s]://[user:password@]host[:port][/database][?prefix=NAME]`. Throws, without the password, for any other form. */
export function readAddress(url: string): Address {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const database = /^\/?(\d{0,5})$/.exec(parsed?.pathname ?? "-")?.[1];
  const prefix = parsed?.searchParams.get("prefix") ?? usualPrefix;
  const isKnown = [...(parsed?.searchParams.keys() ?? [])].every((name) => name === "prefix");
  if (parsed === undefined || !/^rediss?:$/.test(parsed.protocol) || parsed.hostname === "") return refuse();
  if (database === undefined || !isKnown || parsed.hash !== "" || !/^[\w.-]{1,64}$/.test(prefix)) return refuse();
  const { protocol, hostname, port, username, password } = parsed;
  const place = `${protocol}//${hostname}:${port === "" ? usualPort : port}/${Number(database)}`;
  return {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: port === "" ? usualPort : Number(port),
    tls: protocol === "rediss:",
    username: decode(username),
    password: decode(password),
    database: Number(database),
    prefix,
    shown: prefix === usualPrefix ? place : `${place}?prefix=${prefix}`,
  };
}

function decode(part: string): string | undefined {
  try {
    return part === "" ? undefined : decodeURIComponent(part);
  } catch {
    return refuse();
  }
}

function refuse(): never {
  throw new Error(
    "The URL of the session store must have the form redis://[user:password@]host[:port][/database][?prefix=NAME], or rediss:// for TLS.",
  );
}
