/**
 * Programs that npm does not install. Without one, its tests are skipped and say so; PORTICO_REQUIRE names those that
 * must be here, by commas, and turns the skip into a failure.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync } from "node:fs";

/** Debian's folders of PostgreSQL, one a version, the newest first; none is on the PATH. */
const versions = globSync("/usr/lib/postgresql/*/bin")
  .toSorted(new Intl.Collator("en", { numeric: true }).compare)
  .toReversed();

/** Where each is looked for, first that exists; a bare name is searched on the PATH, and an address will do. */
const places = {
  chromium: [process.env["CHROMIUM"] ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"],
  /** For a server of PostgreSQL that a test has for itself; the other tests need only some server. */
  initdb: [...versions.map((folder) => `${folder}/initdb`), "initdb"],
  nginx: ["nginx", "/usr/sbin/nginx"],
  pgbouncer: ["pgbouncer", "/usr/sbin/pgbouncer"],
  postgres: [process.env["PORTICO_POSTGRES"] ?? "", ...versions.map((folder) => `${folder}/postgres`), "postgres"],
  python3: ["python3"],
  "systemd-analyze": ["systemd-analyze"],
} as const;

export type Program = keyof typeof places;

export interface Need {
  /** For a test's options: why it cannot run here, or false. */
  readonly skip: string | false;
  readonly path: string;
}

export function need(program: Program): Need {
  const path = places[program].find((place) => place !== "" && isHere(place));
  if (path !== undefined) return { skip: false, path };
  const required = (process.env["PORTICO_REQUIRE"] ?? "").split(",");
  if (required.includes(program)) throw new Error(`PORTICO_REQUIRE demands ${program}, which is not here.`);
  return { skip: `no ${program} here`, path: program };
}

function isHere(place: string): boolean {
  if (place.includes("://")) return true;
  return place.startsWith("/") ? existsSync(place) : spawnSync("sh", ["-c", `command -v ${place}`]).status === 0;
}
