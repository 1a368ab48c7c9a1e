/** Settings as an operator writes them, and what the gateway finds wrong with them. */
import type { PorticoSettings, Problem } from "../harness/house.ts";
import { ConfigError, makeFolder, openPortico } from "../harness/house.ts";

export const longToken = "sk-test-0123456789abcdef";

type Keys = Readonly<Record<string, unknown>>;

/** Settings that are valid, and open no listener, but for what is put under `gateway.http` and beside it. */
export function withHttp(http: Keys, gateway: Keys = {}): Keys {
  return { gateway: { http: { auth_token: longToken, ...http }, ...gateway } };
}

/** The problems with which a gateway does not open; none if it opens. */
export async function problemsOf(settings: unknown, env: NodeJS.ProcessEnv = {}): Promise<readonly Problem[]> {
  const ends: (() => unknown)[] = [];
  try {
    const folder = makeFolder({ after: (end) => void ends.push(end) });
    const portico = await openPortico(settings as PorticoSettings, { folder, env });
    await portico.close();
    return [];
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.problems;
    throw thrown;
  } finally {
    for (const end of ends) await end();
  }
}

/** The only problem, as one line. */
export async function problemOf(settings: unknown, env?: NodeJS.ProcessEnv): Promise<string> {
  const problems = await problemsOf(settings, env);
  return problems.map(({ path, message }) => `${path}: ${message}`).join("\n");
}
