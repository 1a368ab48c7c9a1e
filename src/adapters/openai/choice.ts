/** Writes which tools the model may or must call; a choice that cannot be met is refused, never left out. */
import { type Dialect, fieldsOf, typeOf } from "../../core/item.ts";
import type { Settings } from "../../core/turn.ts";
import { createIsCustom } from "../custom.ts";
import { refuseChoice } from "../failures.ts";

/** How a wire spells a choice. */
export interface ChoiceSpelling {
  readonly dialect: Dialect;
  name(kind: "function" | "custom", name: string): unknown;
}

/** `offered`: there is a tool to choose. Without one, only a choice that needs a tool matters. */
export function writeToolChoice(settings: Settings, offered: boolean, spelling: ChoiceSpelling): unknown {
  const { toolChoice: choice, tools } = settings;
  switch (choice?.type) {
    case undefined:
      return undefined;
    case "auto":
    case "none":
      return offered ? choice.type : undefined;
    case "required":
      return offered ? "required" : refuseChoice("It requires a call, but there is no tool");
    case "tool":
      return spelling.name(createIsCustom(tools)(choice.name) ? "custom" : "function", choice.name);
    case "other":
      return (
        fieldsOf(choice.extra, spelling.dialect) ?? refuseChoice(`'${typeOf(choice.extra)}' is not a type of tool`)
      );
  }
}
