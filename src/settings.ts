/** The types of a config file's settings as a program writes them, so that the compiler finds wrong keys. */
import type { adapterTypes } from "./adapters/index.ts";
import type { fileSchema } from "./config/schema.ts";
import type { AdapterKeys } from "./config/schema/adapter.ts";
import type { Given } from "./core/schema.ts";

/** What a config file may contain. Keys with a default are optional; any text may contain `${NAME}`. */
export interface PorticoSettings {
  readonly $schema?: string | undefined;
  readonly gateway?: GatewaySettings | undefined;
}

/** The keys under `gateway`. */
type GatewaySettings = Omit<Written<WrittenGateway>, "adapters"> & {
  readonly adapters?: Readonly<Record<string, AdapterSettings>> | undefined;
};

type WrittenGateway = NonNullable<Given<typeof fileSchema>["gateway"]>;

/** An adapter of a type that Portico knows, or the settings of one that the program passes in. */
export type AdapterSettings =
  | {
      [Type in keyof Types]: { readonly type: Type } & Written<AdapterKeys & Given<Types[Type]["options"]>>;
    }[keyof Types]
  | ({ readonly type: "given" } & Written<AdapterKeys>);

type Types = typeof adapterTypes;

/** A value as it may be written: readonly; one of several words may come from the environment, a secret from a file. */
type Written<Value> = Value extends string
  ? Text<Value>
  : Value extends readonly (infer Each)[]
    ? readonly Written<Each>[]
    : Value extends object
      ? { readonly [Key in keyof Value]: Written<Value[Key]> | Secret<Key, Value[Key]> }
      : Value;

type Text<Words extends string> = string extends Words ? Words : Words | `${string}$\{${string}}${string}`;

type Secret<Key, Value> = Key extends "token" | "auth_token" | "api_key"
  ? FileReference
  : Key extends "headers" | "set_env"
    ? Readonly<Record<string, Value extends Readonly<Record<string, infer Each>> ? Each | FileReference : never>>
    : never;

/** The file's text is the secret. */
interface FileReference {
  readonly file: string;
}
