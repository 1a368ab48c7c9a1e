/* Says what the tests need, where it is missing. Written so that the oldest Node can parse it. */
const { existsSync } = require("fs");

const isOld = parseInt(process.versions.node, 10) < 24;
if (isOld || !existsSync(__dirname + "/../node_modules/typescript")) {
  process.stderr.write(
    "The tests need " +
      (isOld ? "Node 24, and this is Node " + process.versions.node : "tools that are not installed") +
      ": run `npm ci --include=dev`, whose install scripts must be allowed to run.\n",
  );
  process.exitCode = 1;
}
