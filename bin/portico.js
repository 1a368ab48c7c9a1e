#!/usr/bin/env node
/* Starts Portico. Written so that the oldest Node can parse it and say what it needs. */
var major = parseInt(process.versions.node, 10);
/* The folder of our files, once the first of them is found. */
var ours;
var hooks;

if (major < 24) {
  process.stderr.write(
    "Portico needs Node 24 or newer, and this is Node " +
      process.versions.node +
      ": install Node 24, or " +
      /* npm runs it in a checkout. */
      (process.env.npm_package_name === "portico"
        ? "let this checkout bring its own with `npm ci --include=dev`, whose install scripts must be allowed to run.\n"
        : "run `npm start` in a checkout, which brings its own.\n"),
  );
  process.exitCode = 1;
} else {
  /* Cached where only the user can write. Node's default is the temporary folder, where others could plant code. */
  var home = process.env.HOME || process.env.USERPROFILE;
  if (home && isOurs(home, "/.cache/portico"))
    process.getBuiltinModule("module").enableCompileCache(home + "/.cache/portico");
  hooks = process.getBuiltinModule("module").registerHooks({ resolve: resolve });
  import("../src/cli/main.ts")
    .catch(function (error) {
      /* The published package has no src/. Anything else that is missing is an error. */
      if (error.code === "ERR_MODULE_NOT_FOUND" && error.url.endsWith("/src/cli/main.ts")) {
        return import("../dist/cli/main.js");
      }
      throw error;
    })
    .then(function (cli) {
      return cli.main();
    });
}

/* Our files import each other by exact path, so none is searched for; searching takes a tenth of a start. */
function resolve(specifier, context, next) {
  var parent = context.parentURL;
  if (ours && specifier.charAt(0) === "." && parent && parent.startsWith(ours)) {
    var format = specifier.endsWith(".ts") ? "module-typescript" : "module";
    return { url: new URL(specifier, parent).href, format: format, shortCircuit: true };
  }
  /* Packages are loaded last, and resolve faster without this hook. */
  if (ours && parent && !parent.startsWith(ours)) hooks.deregister();
  var found = next(specifier, context);
  if (!ours && /\/cli\/main\.[jt]s$/.test(found.url)) ours = found.url.replace(/cli\/main\.[jt]s$/, "");
  return found;
}

/* Whether a folder in the user's home is the user's alone. Creates it if missing, or anew if others may write there. */
function isOurs(home, folder) {
  var fs = process.getBuiltinModule("fs");
  try {
    if (!fs.existsSync(home)) return false;
    fs.mkdirSync(home + folder, { recursive: true, mode: 448 /* rwx------ */ });
    var found = fs.statSync(home + folder);
    if (!process.getuid) return true;
    if (found.uid !== process.getuid()) return false;
    if ((found.mode & 18) /* -w--w- */ !== 0) {
      /* Whatever is in it may have been planted. */
      fs.rmSync(home + folder, { recursive: true });
      fs.mkdirSync(home + folder, { mode: 448 });
    }
    return true;
  } catch (error) {
    /* A home that cannot be written is not used; a bug of ours is thrown. */
    if (error.code) return false;
    throw error;
  }
}
