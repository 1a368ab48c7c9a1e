/** Adapters as the gateway creates them, from options of which only the relevant ones are given. */
import { create as makeAiSdk } from "../../src/adapters/ai-sdk/index.ts";
import { options as aiSdkOptions } from "../../src/adapters/ai-sdk/options.ts";
import { create as makeCommand } from "../../src/adapters/command/index.ts";
import { options as commandOptions } from "../../src/adapters/command/options.ts";
import { create as makeEcho } from "../../src/adapters/echo/index.ts";
import { options as echoOptions } from "../../src/adapters/echo/options.ts";
import { create as makeModule } from "../../src/adapters/module/index.ts";
import { options as moduleOptions } from "../../src/adapters/module/options.ts";
import { create as makeOpenai } from "../../src/adapters/openai/index.ts";
import { options as openaiOptions } from "../../src/adapters/openai/options.ts";
import { fillDefaults } from "../../src/config/fill.ts";
import type { Complete, Given, ObjectSchema } from "../../src/core/schema.ts";

export const createAiSdk = completing(aiSdkOptions, makeAiSdk);
export const createCommand = completing(commandOptions, makeCommand);
export const createOpenai = completing(openaiOptions, makeOpenai);
export const createModule = completing(moduleOptions, makeModule);
export const createEcho = completing(echoOptions, makeEcho);

function completing<Options extends ObjectSchema, Rest extends unknown[], Made>(
  schema: Options,
  make: (options: Complete<Options>, ...rest: Rest) => Made,
) {
  return (given: Given<Options>, ...rest: Rest): Made =>
    make(fillDefaults(schema, given) as Complete<Options>, ...rest);
}
