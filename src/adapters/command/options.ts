/** The options of the command adapter. */
import { answerTimeouts } from "../type.ts";

const defaultEnv = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

export const options = {
  type: "object",
  required: ["argv"],
  properties: {
    argv: {
      type: "array",
      items: { type: "string" },
      minItems: 1,
      description:
        "The program and its arguments, run without a shell. {model} and {prompt} in an argument stand for the model's " +
        "name and the text of the last user message.",
    },
    cwd: {
      type: "string",
      minLength: 1,
      format: "path",
      default: ".",
      description: "The program's working directory, relative to the config file.",
    },
    env: {
      type: "array",
      items: { type: "string", minLength: 1 },
      default: defaultEnv,
      description: "The gateway's own environment variables that the program may see, by name.",
    },
    set_env: {
      type: "object",
      patternProperties: { "^.*$": { type: "string" } },
      description: "Additional environment variables, with their values.",
    },
    input: {
      enum: ["json", "text", "none"],
      default: "json",
      description: "What its standard input gets: the whole turn, the text of the last user message, or nothing.",
    },
    output: {
      enum: ["auto", "text", "jsonl"],
      default: "auto",
      description: "What it writes on standard output: text, or deltas as JSON Lines; auto: its first line decides.",
    },
    ...answerTimeouts,
    max_output_bytes: {
      type: "integer",
      minimum: 1024,
      default: 64 * 1024 * 1024,
      description: "The most it may write in one answer.",
    },
    max_concurrent: {
      type: "integer",
      minimum: 1,
      maximum: 10_000,
      default: 16,
      description: "How many programs may run at the same time; more turns are refused with 503.",
    },
  },
} as const;
