/** Reads the URL of a Redis store. */

export interface Address {
  /** One server, or some nodes of a cluster: any of them knows the others. */
  readonly places: readonly Place[];
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
  /**
   * Begins every key, so that several stores can share one database. In braces, so that all keys of a store are in one
   * slot of a cluster.
   */
  readonly keyPrefix: string;
  /** How many replicas must have a turn before it is acknowledged. */
  readonly replicas: number;
  /** To be shown: without the password. */
  readonly shown: string;
}

/** Where a server is. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

const usualPort = 6379;
const usualPrefix = "portico";
const form = "redis://[user:password@]host[:port][,host[:port]…][/database][?prefix=NAME][&replicas=N]";

/** Throws, without the password, for a URL of another form. */
export function readAddress(url: string): Address {
  const [parsed, ...others] = toUrls(url);
  const database = /^\/?(\d{0,5})$/.exec(parsed?.pathname ?? "-")?.[1];
  const { prefix = usualPrefix, replicas = "0", ...unknown } = Object.fromEntries(parsed?.searchParams ?? []);
  if (parsed === undefined || !/^rediss?:$/.test(parsed.protocol) || parsed.hash !== "") return refuse();
  if (database === undefined || Object.keys(unknown).length > 0) return refuse();
  if (!/^[\w.-]{1,64}$/.test(prefix) || !/^\d$/.test(replicas)) return refuse();
  const { protocol, username, password } = parsed;
  const places = [parsed, ...others].map(toPlace);
  const shown = `${protocol}//${places.map(nameOf).join(",")}/${Number(database)}`;
  return {
    places,
    tls: protocol === "rediss:",
    username: decode(username),
    password: decode(password),
    database: Number(database),
    keyPrefix: `{${prefix}}:`,
    replicas: Number(replicas),
    shown: prefix === usualPrefix ? shown : `${shown}?prefix=${prefix}`,
  };
}

export function nameOf({ host, port }: Place): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The same URL for each of its hosts; none if it cannot be read for one of them. */
function toUrls(url: string): readonly URL[] {
  const [, before = "", hosts = "", after = ""] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s.exec(url) ?? [];
  const urls = hosts.split(",").map((host) => `${before}${host}${after}`);
  const parsed = urls.filter((each) => URL.canParse(each)).map((each) => new URL(each));
  return parsed.length === urls.length && parsed.every(({ hostname }) => hostname !== "") ? parsed : [];
}

function toPlace({ hostname, port }: URL): Place {
  return { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: port === "" ? usualPort : Number(port) };
}

function decode(part: string): string | undefined {
  try {
    return part === "" ? undefined : decodeURIComponent(part);
  } catch {
    return refuse();
  }
}

function refuse(): never {
  throw new Error(`The URL of the session store must have the form ${form}, or rediss:// for TLS.`);
}
