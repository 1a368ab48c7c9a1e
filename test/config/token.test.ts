/** The token that a run without a config file makes. */
import assert from "node:assert/strict";
import fs, {
  chmodSync,
  chownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { ConfigError } from "../../src/config/problem.ts";
import { forgetToken, readOrCreateToken, replaceToken } from "../../src/config/token.ts";
import { whileClosed } from "../cli/stranger.ts";

const noModes = process.platform === "win32" && "there are no such modes";

const folder = mkdtempSync(join(tmpdir(), "portico-token-"));
after(() => rmSync(folder, { recursive: true }));

test("The first run makes a token that only its owner can read, and later runs read it.", () => {
  const dataDir = join(folder, "first");
  const made = readOrCreateToken(dataDir);
  assert.match(made.token, /^sk-portico-[0-9a-f]{48}$/);
  assert.equal(made.isNew, true);
  assert.equal(statSync(dataDir).mode & 0o777, 0o700);
  assert.equal(statSync(made.file).mode & 0o777, 0o600);
  assert.equal(readFileSync(made.file, "utf8"), `${made.token}\n`);
  assert.deepEqual(readOrCreateToken(dataDir), { ...made, isNew: false });
});

test("Its owner can read the token whatever the umask takes away.", { skip: noModes }, () => {
  const dataDir = mkdtempSync(join(folder, "masked-"));
  const before = process.umask(0o277);
  try {
    assert.equal(statSync(readOrCreateToken(dataDir).file).mode & 0o777, 0o600);
  } finally {
    process.umask(before);
  }
});

test("A token that was never shown is taken back.", () => {
  const made = readOrCreateToken(join(folder, "second"));
  forgetToken(made);
  assert.notEqual(readOrCreateToken(join(folder, "second")).token, made.token);
});

test("A token file that is empty is a problem, not an open door.", () => {
  const { file } = readOrCreateToken(join(folder, "third"));
  chmodSync(file, 0o600);
  writeFileSync(file, "\n");
  assert.throws(
    () => readOrCreateToken(join(folder, "third")),
    (thrown) => thrown instanceof ConfigError && /is empty/.test(thrown.message),
  );
});

test("A token file that holds what no header can carry is a problem.", () => {
  const { file } = readOrCreateToken(join(folder, "fourth"));
  writeFileSync(file, "two words\n");
  assert.throws(
    () => readOrCreateToken(join(folder, "fourth")),
    (thrown) => thrown instanceof ConfigError && /no header can carry/.test(thrown.message),
  );
});

test("A data folder that cannot be made is a problem that names the file.", () => {
  writeFileSync(join(folder, "file"), "");
  assert.throws(
    () => readOrCreateToken(join(folder, "file")),
    (thrown) => thrown instanceof ConfigError && /file\/token: .*\(ENOTDIR\)/.test(thrown.message),
  );
});

test("A token that another user has is told as one that cannot be read.", { skip: noModes }, async () => {
  const { file } = readOrCreateToken(join(folder, "others"));
  chmodSync(folder, 0o755);
  chmodSync(join(folder, "others"), 0o777);
  await whileClosed(file, () =>
    assert.throws(
      () => readOrCreateToken(join(folder, "others")),
      (thrown) =>
        thrown instanceof ConfigError &&
        thrown.message ===
          `${file}: the generated token cannot be read (EACCES); ` +
            "give the gateway's user read access to the file and its folder, or run with a config file",
    ),
  );
});

const notRoot = process.geteuid?.() !== 0 && "only root can give a file away";

test("A token of another user's is not replaced, as its gateway could not read the new one.", { skip: notRoot }, () => {
  const { file, token } = readOrCreateToken(join(folder, "given"));
  chownSync(file, 65_534, 65_533);
  assert.throws(
    () => replaceToken(join(folder, "given")),
    /belongs to another user \(uid 65534\).*run this as that user/,
  );
  assert.equal(readFileSync(file, "utf8"), `${token}\n`);
  assert.deepEqual(readdirSync(join(folder, "given")), ["token"]);
});

test("On a full disk the remedy is room, and nothing is left that would stand in the way of the next start.", (context) => {
  const { token: before } = readOrCreateToken(join(folder, "replaced"));
  const full = context.mock.method(fs, "writeFileSync", () => {
    throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  });
  syncBuiltinESMExports();
  const isExplained = (thrown: unknown) =>
    thrown instanceof ConfigError &&
    /\/token: the generated token cannot be kept \(ENOSPC\); make room on its disk, or run with/.test(thrown.message);
  try {
    assert.throws(() => readOrCreateToken(join(folder, "full")), isExplained);
    assert.throws(() => replaceToken(join(folder, "replaced")), isExplained);
  } finally {
    full.mock.restore();
    syncBuiltinESMExports();
  }
  assert.deepEqual(readdirSync(join(folder, "full")), []);
  assert.equal(readOrCreateToken(join(folder, "full")).isNew, true);
  assert.equal(readOrCreateToken(join(folder, "replaced")).token, before);
});
