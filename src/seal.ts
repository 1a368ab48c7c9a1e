/** Encrypts texts that callers carry for the gateway: only it can read or change them, and only for their owner. */
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import type { Seal } from "./wires/wire.ts";

/** Marks our seals and their format; the key's name follows. */
const mark = "portico2.";
const nonceBytes = 12;
const tagBytes = 16;

/** The same text of the same owner always gets the same seal, so that a repeated answer has the same bytes. */
export function createSeal(secrets: () => readonly Uint8Array[]): (owner: string) => Seal {
  let known = new Map<string, Keys>();
  let read: readonly Uint8Array[] = [];
  let own: Keys | undefined;

  /** The first of them seals; the list changes when an archive brings others. */
  function keys(): Keys {
    const current = secrets();
    if (own === undefined || current !== read) {
      read = current;
      known = new Map(current.map(toKeys).map((each) => [each.prefix, each]));
      own = known.values().next().value;
    }
    if (own === undefined) throw new Error("There is no key to seal with.");
    return own;
  }
  function findKeys(sealed: string): Keys | undefined {
    const { prefix } = keys();
    return known.get(sealed.slice(0, prefix.length));
  }

  return (owner) => ({
    seal(text) {
      const { cipherKey, nonceKey, prefix } = keys();
      // A nonce derived from the owner and the text is used for no others, which is all that the cipher requires.
      const nonce = derive(nonceKey, `${owner.length} ${owner}${text}`).subarray(0, nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", cipherKey, nonce).setAAD(Buffer.from(owner));
      const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return prefix + sealed.toString("base64url");
    },
    isOurs: (sealed) => findKeys(sealed) !== undefined,
    open(sealed) {
      const found = findKeys(sealed);
      if (found === undefined) return undefined;
      const bytes = Buffer.from(sealed.slice(found.prefix.length), "base64url");
      if (bytes.length < nonceBytes + tagBytes) return undefined;
      const cipher = createDecipheriv("aes-256-gcm", found.cipherKey, bytes.subarray(0, nonceBytes));
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
