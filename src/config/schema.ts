/** The schema of the configuration file: every key with its type, default and meaning. */
import type { Complete, ObjectSchema } from "../core/schema.ts";
import { http } from "./schema/http.ts";
import { byName, section } from "./schema/kinds.ts";
import { sessions } from "./schema/sessions.ts";

/** The options of each type of adapter, by the type's name. */
export type AdapterOptions = Readonly<Record<string, ObjectSchema>>;

/** A validated file with its defaults filled in. */
export type FileShape = Complete<typeof fileSchema>;

/** What `gateway` contains, without the adapters' own options, which depend on their type. */
export const gatewaySchema = section("The gateway.", {
  auth: section("Who may operate the gateway.", {
    token: {
      type: "string",
      description: "The general token: opens the operator routes, and the endpoints when http.auth_token is not set.",
    },
  }),
  data_dir: {
    type: "string",
    minLength: 1,
    default: ".portico",
    description: "Folder for the database and the generated token.",
  },
  http,
  adapters: byName({}, "What answers, by a name of your choice; when empty, what the environment offers."),
  default_adapter: {
    type: "string",
    description: "The adapter that turns go to; needed if there are several.",
  },
  models: byName({ type: "string" }, "Which adapter answers for a model: an exact name, or a prefix like `gpt-*`."),
  sessions,
  log: section("What the gateway logs.", {
    level: {
      enum: ["silent", "error", "info"],
      default: "info",
      description: "Which lines are written: requests, turns and failures; failures only; or none.",
    },
  }),
});

/** The whole file. */
export const fileSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    $schema: { type: "string", description: "Where an editor finds this schema." },
    gateway: gatewaySchema,
  },
} as const;
