/** How the upstream client handles unusual error codes and chunks, without a socket. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { checkServerIdentity } from "node:tls";
import { toNetworkFailure } from "../../src/adapters/http/failure.ts";
import { readWhole } from "../../src/adapters/http/whole.ts";
import { certificate } from "../certificate.ts";

test("a failure whose code is the name of a built-in property is reported like any unknown one", () => {
  const failure = toNetworkFailure(Object.assign(new Error("x"), { code: "constructor" }), "127.0.0.1:80");
  assert.equal(failure.message, "The upstream at 127.0.0.1:80 cannot be reached (constructor).");
});

test("a certificate for other names is reported with those names, and an expired one as such", () => {
  const error = checkServerIdentity("models.example", new X509Certificate(certificate).toLegacyObject());
  assert.ok(error !== undefined);
  assert.equal(
    toNetworkFailure(error, "models.example:443").message,
    "TLS with the upstream at models.example:443 failed (ERR_TLS_CERT_ALTNAME_INVALID). " +
      "Its certificate is for DNS:localhost, IP Address:127.0.0.1; its URL must use a name from its certificate.",
  );
  const late = Object.assign(new Error("expired"), { code: "CERT_HAS_EXPIRED" });
  assert.equal(toNetworkFailure(late, "models.example:443").isLasting, true);
  assert.match(
    toNetworkFailure(late, "models.example:443").message,
    /\(CERT_HAS_EXPIRED\)\. Renew its certificate, or/,
  );
});

test("an answer may arrive in more chunks at once than a function can take arguments", async () => {
  const piece = Buffer.from("x");
  const batches = [Array.from({ length: 250_000 }, () => piece)];
  const pull = () => Promise.resolve(batches.shift());
  assert.equal((await readWhole({ status: 200, headers: {}, pull, leave() {} }, 1_000_000)).length, 250_000);
});
