#!/usr/bin/env node
/* Starts Portico. Written so that the oldest Node can read it and say what is missing. */
var major = parseInt(process.versions.node, 10);
/* The folder of our files, once the first of them was found. */
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
  /* Kept where only the user writes. Node's own choice is the temporary folder, where others could plant what we would run. */
  var home = process.env.HOME || process.env.USERPROFILE;
  if (home && isOurs(home, "/.cache/portico"))
    process.getBuiltinModule("module").enableCompileCache(home + "/.cache/portico");
  hooks = process.getBuiltinModule("module").registerHooks({ resolve: resolve });
  import("../src/cli/main.ts")
    .catch(function (error) {
      /* The published package has no src/. Anything else that is missing is told as it is. */
      if (error.code === "ERR_MODULE_NOT_FOUND" && error.url.endsWith("/src/cli/main.ts")) {
        return import("../dist/cli/main.js");
      }
      throw error;
    })
    .then(function (cli) {
      return cli.main();
    });
}

/* Our files name each other exactly, so that none has to be looked for; to look for all of them takes a tenth of a start. */
function resolve(specifier, context, next) {
  var parent = context.parentURL;
  if (ours && specifier.charAt(0) === "." && parent && parent.startsWith(ours)) {
    var format = specifier.endsWith(".ts") ? "module-typescript" : "module";
    return { url: new URL(specifier, parent).href, format: format, shortCircuit: true };
  }
  /* The files of packages come last, and find each other sooner without us. */
  if (ours && parent && !parent.startsWith(ours)) hooks.deregister();
  var found = next(specifier, context);
  if (!ours && /\/cli\/main\.[jt]s$/.test(found.url)) ours = found.url.replace(/cli\/main\.[jt]s$/, "");
  return found;
}

/* Whether a folder of the user's home is the user's alone. It is made if it is not there, and anew if others may write there. */
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
    /* A home that cannot be written is none for it; a fault of ours is told. */
    if (error.code) return false;
    throw error;
  }
}
