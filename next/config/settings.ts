/** The types of a config file's settings as a program writes them, so that the compiler finds wrong keys. */
import type { adapterKinds, commonKeys } from "./adapters.ts";
import type { Section } from "./form.ts";
import type { toFileForm } from "./keys.ts";

/** What a config file may contain. */
export type PorticoSettings = Written<Omit<FileKeys, "gateway">> & { readonly gateway?: GatewaySettings | undefined };

type FileKeys = ReturnType<typeof toFileForm>["keys"];
type GatewaySettings = Written<Omit<FileKeys["gateway"]["keys"], "adapters">> & {
  readonly adapters?: Readonly<Record<string, AdapterSettings>> | undefined;
};

type Kinds = typeof adapterKinds;

/** An adapter of a type that Portico knows, or the settings of one that the program passes in. */
export type AdapterSettings =
  | { [Kind in keyof Kinds]: { readonly type: Kind } & Written<typeof commonKeys & Kinds[Kind]> }[keyof Kinds]
  | ({ readonly type: "given" } & Written<typeof commonKeys>);

type Written<Own> = {
  readonly [Key in keyof Own as Own[Key] extends { readonly isRequired: true } ? never : Key]?:
    | Word<Own[Key]>
    | undefined;
} & { readonly [Key in keyof Own as Own[Key] extends { readonly isRequired: true } ? Key : never]: Word<Own[Key]> };

/** A value as it may be written: one of several words may come from the environment, a secret from a file. */
type Word<Of> = Of extends { readonly type: "text" }
  ? string | (Of extends { readonly isSecret: true } ? { readonly file: string } : never)
  : Of extends { readonly type: "choice"; readonly choices: readonly (infer Each)[] }
    ? Each | `${string}$\{${string}}${string}`
    : Of extends { readonly type: "integer" }
      ? number
      : Of extends { readonly type: "flag" }
        ? boolean
        : Of extends { readonly type: "list"; readonly each: infer Each }
          ? readonly Word<Each>[]
          : Of extends { readonly type: "names"; readonly each: infer Each }
            ? Readonly<Record<string, Word<Each>>>
            : Of extends Section & { readonly keys: infer Own }
              ? Written<Own>
              : unknown;
