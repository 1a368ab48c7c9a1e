/** Reads the URL of a store. */

export const allowedRedis =
  "redis://[user:password@]host[:port][,host[:port]…][/database][?prefix=NAME][&replicas=N], or rediss:// for TLS; " +
  "percent-encode any characters in a password other than letters and digits";

/** Whether it is a valid Redis URL. Several hosts are nodes of one cluster. */
export function isRedisUrl(text: string): boolean {
  const [, before = "", hosts = "", after = ""] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s.exec(text) ?? [];
  return hosts.split(",").every((host) => isServerUrl(`${before}${host}${after}`));
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
