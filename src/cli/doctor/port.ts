/** Whether the gateway can listen as configured, or already does. */
import { once } from "node:events";
import { lstatSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import type { Config } from "../../config/config.ts";
import { ConfigError } from "../../config/problem.ts";
import { findToken } from "../../config/token.ts";
import { explainFailure } from "../failure.ts";
import { readHolding } from "../holder.ts";
import { probeGateway, knowsToken, toAddress, whyNotReady } from "../probe.ts";
import { type Finding, ok, problemWith, warning } from "./finding.ts";
import { codeOf } from "../../core/errors.ts";

const about = "port";

/** A port held by our own gateway is ok. */
export async function judgePort(config: Config): Promise<Finding> {
  const { http } = config;
  if (!http.endpoints.chat && !http.endpoints.responses) {
    const remedy = "enable one in gateway.http.endpoints if clients are to connect";
    return warning(about, `no endpoint is on, so no listener is opened; ${remedy}`);
  }
  const { bind, port } = http;
  if (bind.startsWith("unix:")) return judgeSocket(bind, config);
  const failure = await tryListening(bind, port);
  if (failure === undefined) return ok(about, port === 0 ? "any free one" : `port ${port} of ${bind} is free`);
  return codeOf(failure) === "EADDRINUSE" ? judgeTaken(config) : problemWith(about, explainFailure(failure, http));
}

/** Listens for a moment, the only way to find out; returns the error, if any. */
async function tryListening(host: string, port: number): Promise<unknown> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, "listening");
    return undefined;
  } catch (thrown) {
    return thrown;
  } finally {
    server.close();
  }
}

async function judgeTaken(config: Config): Promise<Finding> {
  const address = toAddress(config.http);
  if (address === undefined || (await probeGateway(address)) !== "gateway") {
    return problemWith(about, explainFailure(inUse, config.http));
  }
  const holding = readHolding(config.sessions.store);
  if (holding === "unreadable") {
    const remedy = "to learn more, run this as the gateway's user";
    return warning(
      about,
      `whoever answers at ${address} was sent no token: this user may not read the store's lock; ${remedy}`,
    );
  }
  if (holding === "free") {
    const remedy = "if it is yours, it uses another store; else stop it, or choose another port";
    return problemWith(
      about,
      `whoever answers at ${address} does not have this store open, so it was sent no token; ${remedy}`,
    );
  }
  for (const [name, token] of Object.entries(ownTokens(config))) {
    if (token === undefined || (await knowsToken(address, token))) continue;
    const remedy = "if it is yours, restart it or send it a SIGHUP; else choose another port";
    return problemWith(
      about,
      `the gateway at ${address} does not know ${name}, so it runs with other settings; ${remedy}`,
    );
  }
  const reason = await whyNotReady(address);
  return reason === undefined
    ? ok(about, `a gateway answers at ${address}`)
    : problemWith(about, `the gateway at ${address} is not ready: ${reason}`);
}

/** The tokens known in plain text, by their places: of a named token only the digest is known. */
function ownTokens({ file, dataDir, auth, http }: Config): Readonly<Record<string, string | undefined>> {
  if (file !== undefined) return { "gateway.http.auth_token": http.authToken, "gateway.auth.token": auth.token };
  try {
    const storedToken = findToken(dataDir);
    return storedToken === undefined ? {} : { [`the token in ${storedToken.file}`]: storedToken.token };
  } catch (thrown) {
    // An unreadable token has a finding of its own.
    if (thrown instanceof ConfigError) return {};
    throw thrown;
  }
}

/** A start clears a socket on which nobody answers, and leaves anything else alone. */
async function judgeSocket(bind: string, config: Config): Promise<Finding> {
  const path = bind.slice("unix:".length);
  let found;
  try {
    if (statSync(dirname(path), { throwIfNoEntry: false }) === undefined)
      return problemWith(about, `${dirname(path)} does not exist; create the folder`);
    found = lstatSync(path, { throwIfNoEntry: false });
  } catch (thrown) {
    const remedy = "choose another path in gateway.http.bind";
    return problemWith(about, `${path} cannot be examined (${codeOf(thrown)}); ${remedy}`);
  }
  if (found !== undefined && !found.isSocket()) {
    return problemWith(about, `${path} is not a socket; choose another path in gateway.http.bind, or remove it`);
  }
  return found === undefined || (await probeGateway(bind)) === "nobody"
    ? ok(about, `the socket ${path} is free`)
    : judgeTaken(config);
}

const inUse = Object.assign(new Error("in use"), { code: "EADDRINUSE", syscall: "listen" });
