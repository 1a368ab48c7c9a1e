/** Makes texts opaque that callers carry for the gateway: nobody else can read or change them, and no other owner can use them. */
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import type { SealOf } from "./protocols/responses/seal.ts";

/** Marks what was sealed here, and how; behind it stands the name of the key. */
const mark = "portico2.";
/** Marks what was sealed before seals had owners. */
const retired = "portico1.";
const nonceBytes = 12;
const tagBytes = 16;

/** The same text of the same owner always gets the same seal, so that an answer told twice has the same bytes. */
export function createSeal(secret: Uint8Array): SealOf {
  const cipherKey = derive(secret, "owned cipher");
  const nonceKey = derive(secret, "owned nonce");
  const prefix = `${mark}${derive(secret, "owned name").toString("base64url").slice(0, 8)}.`;
  return (owner) => ({
    seal(text) {
      // A nonce that comes from the owner and the text is used for no others, which is all that the cipher asks of it.
      const nonce = derive(nonceKey, `${owner.length} ${owner}${text}`).subarray(0, nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", cipherKey, nonce).setAAD(Buffer.from(owner));
      const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return prefix + sealed.toString("base64url");
    },
    isOurs: (sealed) => sealed.startsWith(prefix) || sealed.startsWith(retired),
    open(sealed) {
      if (!sealed.startsWith(prefix)) return undefined;
      const bytes = Buffer.from(sealed.slice(prefix.length), "base64url");
      if (bytes.length < nonceBytes + tagBytes) return undefined;
      const cipher = createDecipheriv("aes-256-gcm", cipherKey, bytes.subarray(0, nonceBytes));
      cipher.setAAD(Buffer.from(owner)).setAuthTag(bytes.subarray(-tagBytes));
      try {
        return cipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8") + cipher.final("utf8");
      } catch {
        return undefined; // another owner's, or tampered with
      }
    },
  });
}

function derive(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
