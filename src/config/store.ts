/** Reads the URL of a store. */

const allowedRedis =
  "redis://[user:password@]host[:port][,host[:port]…][/database][?prefix=NAME][&replicas=N], or rediss:// for TLS; " +
  "percent-encode any characters in a password other than letters and digits";

/** What is allowed instead of an invalid Redis URL; undefined for any other. Several hosts are nodes of one cluster. */
export function judgeStore(text: string): string | undefined {
  if (!/^rediss?:\/\/./.test(text)) return undefined;
  const [, before = "", hosts = "", after = ""] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s.exec(text) ?? [];
  return hosts.split(",").every((host) => isServerUrl(`${before}${host}${after}`)) ? undefined : allowedRedis;
}

/** The store's file, if any. */
export function fileOfStore(url: string): string | undefined {
  return url.startsWith("sqlite:") ? url.slice("sqlite:".length) : undefined;
}

function isServerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { hostname, pathname, searchParams, hash, username, password } = new URL(text);
  const isPlace = hostname !== "" && /^\/?\d{0,5}$/.test(pathname) && hash === "";
  const isKnown = [...searchParams].every((setting) => redisSetting.test(setting.join("=")));
  return isPlace && isKnown && canDecode(username + password);
}

const redisSetting = /^(prefix=[\w.-]{1,64}|replicas=\d)$/;

function canDecode(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
