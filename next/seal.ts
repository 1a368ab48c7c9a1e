/** Encrypts texts that callers carry for the gateway: only it can read or change them, and only for their owner. */
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import type { Seal } from "./wires/wire.ts";

/** Marks our seals and their format; the key's name follows. */
const mark = "portico2.";
const nonceBytes = 12;
const tagBytes = 16;

/**
 * The same text of the same owner always gets the same seal, so that a repeated answer has the same bytes. `others` are
 * the secrets of texts sealed elsewhere.
 */
export function createSeal(secret: Uint8Array, others: readonly Uint8Array[] = []): (owner: string) => Seal {
  const own = toKeys(secret);
  const known = new Map([...others.map(toKeys), own].map((keys) => [keys.prefix, keys]));
  const findKeys = (sealed: string) => known.get(sealed.slice(0, own.prefix.length));
  return (owner) => ({
    seal(text) {
      const { cipherKey, nonceKey, prefix } = own;
      // A nonce derived from the owner and the text is used for no others, which is all that the cipher requires.
      const nonce = derive(nonceKey, `${owner.length} ${owner}${text}`).subarray(0, nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", cipherKey, nonce).setAAD(Buffer.from(owner));
      const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return prefix + sealed.toString("base64url");
    },
    isOurs: (sealed) => findKeys(sealed) !== undefined,
    open(sealed) {
      const keys = findKeys(sealed);
      if (keys === undefined) return undefined;
      const bytes = Buffer.from(sealed.slice(keys.prefix.length), "base64url");
      if (bytes.length < nonceBytes + tagBytes) return undefined;
      const cipher = createDecipheriv("aes-256-gcm", keys.cipherKey, bytes.subarray(0, nonceBytes));
      cipher.setAAD(Buffer.from(owner)).setAuthTag(bytes.subarray(-tagBytes));
      try {
        return cipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8") + cipher.final("utf8");
      } catch {
        return undefined; // another owner's, or tampered with
      }
    },
  });
}

interface Keys {
  /** The beginning of all their seals. */
  readonly prefix: string;
  readonly cipherKey: Buffer;
  readonly nonceKey: Buffer;
}

function toKeys(secret: Uint8Array): Keys {
  const name = derive(secret, "owned name").toString("base64url").slice(0, 8);
  return {
    prefix: `${mark}${name}.`,
    cipherKey: derive(secret, "owned cipher"),
    nonceKey: derive(secret, "owned nonce"),
  };
}

function derive(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
