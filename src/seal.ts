/** Makes texts opaque that callers carry for the gateway: nobody else can read or change them. */
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import type { Seal } from "./protocols/responses/seal.ts";

/** Marks what was sealed here, and how. */
const prefix = "portico1.";
const nonceBytes = 12;
const tagBytes = 16;

/** The same text always gets the same seal, so that an answer told twice has the same bytes. */
export function createSeal(key: Uint8Array): Seal {
  const cipherKey = derive(key, "cipher");
  const nonceKey = derive(key, "nonce");
  return {
    seal(text) {
      // A nonce that comes from the text is used for no other text, which is all that the cipher asks of it.
      const nonce = derive(nonceKey, text).subarray(0, nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", cipherKey, nonce);
      const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return prefix + sealed.toString("base64url");
    },
    open(sealed) {
      if (!sealed.startsWith(prefix)) return undefined;
      const bytes = Buffer.from(sealed.slice(prefix.length), "base64url");
      if (bytes.length < nonceBytes + tagBytes) return undefined;
      const cipher = createDecipheriv("aes-256-gcm", cipherKey, bytes.subarray(0, nonceBytes));
      cipher.setAuthTag(bytes.subarray(-tagBytes));
      try {
        return cipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8") + cipher.final("utf8");
      } catch {
        return undefined; // another key's, or tampered with
      }
    },
  };
}

function derive(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
