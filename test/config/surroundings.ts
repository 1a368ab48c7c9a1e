/** Surroundings of a configuration for tests: no real environment, no real files, two types of adapters. */
import { Type } from "typebox";
import { type Loaded, loadConfig, type LoadSurroundings } from "../../src/config/load.ts";
import { ConfigError, type Problem } from "../../src/config/problem.ts";

export const adapterOptions = {
  echo: Type.Object({ delay_ms: Type.Integer({ minimum: 0, default: 0 }) }),
  openai: Type.Object({
    base_url: Type.String({ default: "https://api.openai.com/v1" }),
    api_key: Type.Optional(Type.String()),
    headers: Type.Record(Type.String(), Type.String(), { default: {} }),
    proxy: Type.Optional(Type.Union([Type.String(), Type.Boolean({ enum: [false] })])),
  }),
};

export const longToken = "sk-test-0123456789abcdef";

export function surroundings(changes: Partial<LoadSurroundings> = {}): LoadSurroundings {
  return {
    env: {},
    probe: async () => undefined,
    adapterOptions,
    readText: (file) => {
      throw Object.assign(new Error(`no ${file}`), { code: "ENOENT" });
    },
    now: new Date("2026-01-01T00:00:00Z"),
    ...changes,
  };
}

/** Loads a file of the folder `/etc/portico`. */
export function load(file: unknown, changes?: Partial<LoadSurroundings>, mode = 0o600): Promise<Loaded> {
  const text = typeof file === "string" ? file : JSON.stringify(file);
  return loadConfig({ file: "/etc/portico/portico.json", text, mode }, surroundings(changes));
}

export async function problemsOf(file: unknown, changes?: Partial<LoadSurroundings>): Promise<readonly Problem[]> {
  try {
    await load(file, changes);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.problems;
    throw thrown;
  }
  return [];
}

/** A file that is valid except for what is put under `gateway.http`, and next to it. */
export function withHttp(http: object, gateway: object = {}): object {
  return { gateway: { http: { auth_token: longToken, ...http }, ...gateway } };
}
