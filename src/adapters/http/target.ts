/** Reads a base URL: where to connect, the prefix of each path, and how errors may name it. */

export interface Target {
  readonly origin: string;
  readonly socketPath: string | undefined;
  readonly pathPrefix: string;
  /** The base URL's query, sent with every request. */
  readonly search: string;
  /** Host and port, or the socket's path: never a password. */
  readonly address: string;
}

/** The form of a base URL. It never contains credentials, nor the path of a request, which is added to it. */
export const baseUrlPattern = String.raw`^(?!(https?://[^?]*|unix:[^:]*:.*)/(chat/completions|responses)/?(\?|$))(https?://[^/?#@\s]+(/[^?#\s]*)?(\?[^#\s]*)?|unix:/[^:\s]+(:/[^?#\s]*)?)$`;

export function readTarget(baseUrl: string): Target {
  const socket = /^unix:(\/[^:]+)(?::(\/.*))?$/.exec(baseUrl);
  if (socket !== null) {
    const [, socketPath = "", prefix = ""] = socket;
    const pathPrefix = withoutTrailingSlash(prefix);
    return { origin: "http://localhost", socketPath, pathPrefix, search: "", address: socketPath };
  }
  const url = new URL(baseUrl);
  const port = url.port !== "" ? url.port : url.protocol === "https:" ? "443" : "80";
  return {
    origin: url.origin,
    socketPath: undefined,
    pathPrefix: withoutTrailingSlash(url.pathname),
    search: url.search,
    address: `${url.hostname}:${port}`,
  };
}

function withoutTrailingSlash(path: string): string {
  return path.endsWith("/") ? path.slice(0, -1) : path;
}
