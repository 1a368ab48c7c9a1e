/** Whether the gateway can listen where it shall, or does already. */
import { once } from "node:events";
import { lstatSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import type { HttpConfig } from "../../config/config.ts";
import { explainFailure } from "../failure.ts";
import { knock, toAddress, whyNotReady } from "../knock.ts";
import { codeOf, type Finding, ok, problemWith, warning } from "./finding.ts";

const about = "port";

/** A port that our own gateway has is well. */
export async function judgePort(http: HttpConfig): Promise<Finding> {
  if (!http.endpoints.compatChat && !http.endpoints.compatResponses) {
    const remedy = "switch one on in gateway.http.endpoints, if clients shall come";
    return warning(about, `no endpoint is on, so no listener is opened; ${remedy}`);
  }
  const { bind, port } = http;
  if (bind.startsWith("unix:")) return judgeSocket(bind, http);
  const failure = await tryListening(bind, port);
  if (failure === undefined) return ok(about, port === 0 ? "any free one" : `port ${port} of ${bind} is free`);
  return isInUse(failure) ? judgeTaken(http) : problemWith(about, explainFailure(failure, http));
}

/** Listens for a moment, as nothing else tells whether it may; gives what went wrong. */
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

async function judgeTaken(http: HttpConfig): Promise<Finding> {
  const address = toAddress(http);
  if (address === undefined || (await knock(address)) !== "gateway") {
    return problemWith(about, explainFailure(inUse, http));
  }
  const reason = await whyNotReady(address);
  return reason === undefined
    ? ok(about, `a gateway answers at ${address}`)
    : problemWith(about, `the gateway at ${address} is not ready: ${reason}`);
}

/** A socket on which nobody answers is cleared at the start; anything else is left alone. */
async function judgeSocket(bind: string, http: HttpConfig): Promise<Finding> {
  const path = bind.slice("unix:".length);
  let found;
  try {
    if (statSync(dirname(path), { throwIfNoEntry: false }) === undefined)
      return problemWith(about, `${dirname(path)} is not there; make the folder`);
    found = lstatSync(path, { throwIfNoEntry: false });
  } catch (thrown) {
    const remedy = "choose another path in gateway.http.bind";
    return problemWith(about, `${path} cannot be looked at (${codeOf(thrown)}); ${remedy}`);
  }
  if (found !== undefined && !found.isSocket()) {
    return problemWith(about, `${path} is no socket; choose another path in gateway.http.bind, or remove it`);
  }
  return found === undefined || (await knock(bind)) === "nobody"
    ? ok(about, `the socket ${path} is free`)
    : judgeTaken(http);
}

function isInUse(failure: unknown): boolean {
  return failure instanceof Error && "code" in failure && failure.code === "EADDRINUSE";
}

const inUse = Object.assign(new Error("in use"), { code: "EADDRINUSE", syscall: "listen" });
