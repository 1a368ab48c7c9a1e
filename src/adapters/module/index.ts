/** The module adapter: a file of the operator's own answers. */
import { Type } from "typebox";
import { defineAdapter } from "../type.ts";
import { guardAdapter } from "./guard.ts";
import { loadAdapter } from "./load.ts";

const options = Type.Object({
  path: Type.String({
    minLength: 1,
    format: "path",
    description: "The JavaScript or TypeScript file whose default export makes the adapter.",
  }),
  options: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      default: {},
      description: "What the file's function is called with.",
    }),
  ),
});

export const module = defineAdapter(options, ({ path, options: own = {} }) => guardAdapter(loadAdapter(path, own)));
