/** Runs `src/` in a checkout, or `dist/` in the published package, and lets it start quickly. */
import { hash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import { enableCompileCache, registerHooks } from "node:module";
import { join } from "node:path";

const source = new URL("../src/cli/main.ts", import.meta.url);
const program = existsSync(source) ? source : new URL("../dist/cli/main.js", import.meta.url);
/** How many installations have compiled code in the cache. */
const maxInstallations = 4;

cacheCompiledCode();
resolveOurFiles(new URL("..", program).href);
import(program.href).then(({ main }) => main());

/**
 * Caches compiled code where only the user can write: Node's default is the temporary folder, where others could plant
 * code. Node never removes any, so each installation has a folder, of which those that were used last are kept.
 */
function cacheCompiledCode() {
  const home = process.env.HOME || process.env.USERPROFILE;
  if (!home || process.env.NODE_COMPILE_CACHE) return;
  const cache = join(home, ".cache/portico");
  const own = join(cache, hash("sha256", `${process.version} ${program.href}`).slice(0, 16));
  try {
    if (!existsSync(home) || !makePrivate(cache)) return;
    const isNew = mkdirSync(own, { recursive: true }) !== undefined;
    // First, because a home that can only be read may have the code, too.
    enableCompileCache(own);
    utimesSync(own, new Date(), new Date());
    if (isNew) removeOldest(cache);
  } catch (thrown) {
    // A home that cannot be written is no failure; a bug of ours is thrown.
    if (thrown.code === undefined) throw thrown;
  }
}

/** Whether a folder is the user's alone. Creates it if missing, or anew if others may write there. */
function makePrivate(folder) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (process.getuid === undefined) return true;
  const { uid, mode } = statSync(folder);
  if (uid !== process.getuid()) return false;
  if ((mode & 0o022) !== 0) {
    // Whatever is in it may have been planted.
    rmSync(folder, { recursive: true });
    mkdirSync(folder, { mode: 0o700 });
  }
  return true;
}

function removeOldest(folder) {
  const found = readdirSync(folder).map((name) => ({
    path: join(folder, name),
    at: statSync(join(folder, name)).mtimeMs,
  }));
  const oldest = found.toSorted((one, other) => other.at - one.at).slice(maxInstallations);
  for (const { path } of oldest) rmSync(path, { recursive: true, force: true });
}

/** Our files import each other by exact path, so none is searched for; searching takes a tenth of a start. */
function resolveOurFiles(ours) {
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const { parentURL = "" } = context;
      const isOurs = parentURL.startsWith(ours);
      if (isOurs && specifier.startsWith(".")) {
        const format = specifier.endsWith(".ts") ? "module-typescript" : "module";
        return { url: new URL(specifier, parentURL).href, format, shortCircuit: true };
      }
      // Packages are loaded last, and resolve faster without this hook.
      if (!isOurs && parentURL !== import.meta.url) hooks.deregister();
      return next(specifier, context);
    },
  });
}
