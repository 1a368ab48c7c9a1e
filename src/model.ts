/** Finds the model to ask when nobody names one. */
import { seemsToChat } from "./config/detect.ts";
import { GatewayError, toGatewayError } from "./core/errors.ts";

/** The wanted model if listed, else the first that seems to chat, else any. Throws, with a remedy, if there is none. */
export async function findModel(
  list: () => Promise<readonly string[]>,
  remedy: string,
  wanted?: string,
): Promise<string> {
  const listed = await read(list, remedy);
  const found = listed.find((name) => name === wanted) ?? listed.find(seemsToChat) ?? listed[0];
  if (found !== undefined) return found;
  const message = `No model is named, and the list of models is empty. ${remedy}`;
  throw new GatewayError("missing_required_parameter", message, { param: "model" });
}

async function read(list: () => Promise<readonly string[]>, remedy: string): Promise<readonly string[]> {
  try {
    return await list();
  } catch (cause) {
    const { code, message } = toGatewayError(cause);
    // Naming a model would not help against a refusal.
    if (code === "adapter_refused") throw cause;
    const all = `No model is named, and the list of models cannot be retrieved: ${message} ${remedy}`;
    throw new GatewayError(code, all, { cause });
  }
}
