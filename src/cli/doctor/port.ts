/** Whether the gateway can listen as configured, or already does. */
import { once } from "node:events";
import { lstatSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { type Config, hasListener } from "../../config/config.ts";
import { ConfigError } from "../../config/problem.ts";
import { findToken } from "../../config/token.ts";
import { findAddresses, isAbsent } from "../../http/listener.ts";
import { explainFailure } from "../failure.ts";
import { readHolding } from "../holder.ts";
import { probeGateway, knowsToken, toAddress, whyNotReady } from "../probe.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";
import { codeOf } from "../../core/errors.ts";

/** A port held by our own gateway is ok. */
export async function judgePort(config: Config): Promise<Finding> {
  const { http } = config;
  if (!hasListener(http)) {
    const remedy = "enable one in gateway.http.endpoints if clients are to connect";
    return warning("no endpoint is on, so no listener is opened", remedy);
  }
  const { bind, port } = http;
  if (bind.startsWith("unix:")) return judgeSocket(bind.slice("unix:".length), config);
  // A name that cannot be resolved fails to listen too, and is explained then.
  const addresses = await findAddresses(bind).catch(() => [bind]);
  const [first, ...others] = await Promise.all(addresses.map((host) => tryListening(host, port)));
  const failure = first ?? others.find((each) => each !== undefined && !isAbsent(each));
  if (failure === undefined) return port === 0 ? ok("any free one") : judgeFree(`port ${port} of ${bind}`, config);
  return codeOf(failure) === "EADDRINUSE" ? judgeTaken(config) : problem(explainFailure(failure, http));
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
  if ((await probeGateway(address)) !== "gateway") return problem(explainFailure(inUse, config.http));
  const holding = readHolding(config.sessions.store);
  if (holding === "unreadable") {
    const text = `whoever answers at ${address} was sent no token: this user may not read the store's lock`;
    return warning(text, "to learn more, run this as the gateway's user");
  }
  if (holding === "free") {
    const text = `whoever answers at ${address} does not have this store open, so it was sent no token`;
    return problem(text, "if it is yours, it uses another store; else stop it, or choose another port");
  }
  for (const [name, token] of Object.entries(ownTokens(config))) {
    if (token === undefined || (await knowsToken(address, token))) continue;
    const text = `the gateway at ${address} does not know ${name}, so it runs with other settings`;
    return problem(text, "if it is yours, restart it or send it a SIGHUP; else choose another port");
  }
  const reason = await whyNotReady(address);
  return reason === undefined
    ? ok(`a gateway answers at ${address}`)
    : problem(`the gateway at ${address} is not ready: ${reason}`);
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
async function judgeSocket(path: string, config: Config): Promise<Finding> {
  let found;
  try {
    if (statSync(dirname(path), { throwIfNoEntry: false }) === undefined)
      return problem(`${dirname(path)} does not exist`, "create the folder");
    found = lstatSync(path, { throwIfNoEntry: false });
  } catch (thrown) {
    return problem(`${path} cannot be examined (${codeOf(thrown)})`, "choose another path in gateway.http.bind");
  }
  if (found !== undefined && !found.isSocket()) {
    return problem(`${path} is not a socket`, "choose another path in gateway.http.bind, or remove it");
  }
  const isFree = (await probeGateway(config.http.bind)) === "nobody";
  return isFree ? judgeFree(`the socket ${path}`, config) : judgeTaken(config);
}

/** A running gateway that the configuration does not lead to has another address, or none. */
function judgeFree(where: string, { sessions }: Config): Finding {
  if (readHolding(sessions.store) !== "held") return ok(`${where} is free`);
  const remedy = "if by a gateway that was started with --bind or --port, repeat them here";
  return warning(`${where} is free, but the store is in use`, remedy);
}

const inUse = Object.assign(new Error("in use"), { code: "EADDRINUSE", syscall: "listen" });
