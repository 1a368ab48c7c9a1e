/** The schema of the configuration file: every key with its type, its default and what it means. */
import type { Complete, ObjectSchema } from "../core/schema.ts";
import { logLevels } from "./config.ts";
import { http } from "./schema/http.ts";
import { closed } from "./schema/kinds.ts";
import { sessions } from "./schema/sessions.ts";

/** The options of each type of adapter, by the type's name. */
export type AdapterOptions = Readonly<Record<string, ObjectSchema>>;

/** A file that has passed the schema, with its defaults filled in. */
export type FileShape = Complete<typeof fileSchema>;

/** The file without its adapters' own options, which are known by their type only. */
export const fileSchema = {
  type: "object",
  ...closed,
  properties: {
    $schema: { type: "string", description: "Where an editor finds this schema." },
    gateway: {
      type: "object",
      ...closed,
      default: {},
      description: "The gateway.",
      properties: {
        auth: {
          type: "object",
          ...closed,
          default: {},
          description: "Who may operate the gateway.",
          properties: {
            token: {
              type: "string",
              description:
                "The general token: opens the operator routes, and the endpoints when http.auth_token is not set.",
            },
          },
        },
        data_dir: {
          type: "string",
          minLength: 1,
          default: ".portico",
          description: "Folder of the database and of the generated token.",
        },
        http,
        adapters: {
          type: "object",
          patternProperties: { "^.*$": {} },
          default: {},
          description: "What answers, by a name of your choice; when empty, what the environment offers.",
        },
        default_adapter: {
          type: "string",
          description: "The name of the adapter to which turns go; needed when there are several.",
        },
        models: {
          type: "object",
          patternProperties: { "^.*$": { type: "string" } },
          default: {},
          description: "Which adapter answers for a model: a name, or the beginning of names like `gpt-*`.",
        },
        sessions,
        log: {
          type: "object",
          ...closed,
          default: {},
          description: "What the gateway tells about itself.",
          properties: {
            level: { enum: [...logLevels], default: "info", description: "The least important line that is logged." },
          },
        },
      },
    },
  },
} as const;
