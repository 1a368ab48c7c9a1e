/** What one of several processes has of each limit that every process counts for itself. */
import type { Config } from "./config.ts";

/** The same configuration with its part of those limits, rounded up. */
export function toShare(config: Config): Config {
  const { http, sessions, workers } = config;
  const toPart = (whole: number): number => Math.ceil(whole / workers);
  const toOwn = <Limits extends Counted>(limits: Limits): Limits => {
    const { rate, maxConcurrentTurns: turns } = limits;
    return {
      ...limits,
      ...(rate && { rate: { requestsPerMinute: toPart(rate.requestsPerMinute), burst: toPart(rate.burst) } }),
      ...(turns !== undefined && { maxConcurrentTurns: toPart(turns) }),
    };
  };
  const limits = { ...toOwn(http.limits), maxConnections: toPart(http.limits.maxConnections) };
  return {
    ...config,
    http: { ...http, limits, tokens: http.tokens.map((token) => ("rate" in token ? toOwn(token) : token)) },
    sessions: { ...sessions, maxBackgroundTurns: toPart(sessions.maxBackgroundTurns) },
  };
}

/** Of all callers, or of one token. */
interface Counted {
  readonly rate?: Config["http"]["limits"]["rate"];
  readonly maxConcurrentTurns?: number | undefined;
}
