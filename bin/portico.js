#!/usr/bin/env node
/* Starts Portico. Written so that the oldest Node can parse it and say what it needs. */
if (parseInt(process.versions.node, 10) >= 24) {
  import("./run.js");
} else {
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
}
