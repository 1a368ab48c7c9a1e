/** The model that is asked where nobody has named one. */
import { seemsToTalk } from "./config/detect.ts";
import { GatewayError, toGatewayError } from "./core/errors.ts";

/** The wanted one if it is listed, else the first that seems to talk. Throws, with the remedy, when none can be found. */
export async function findModel(
  list: () => Promise<readonly string[]>,
  remedy: string,
  wanted?: string,
): Promise<string> {
  const listed = await read(list, remedy);
  const found = listed.find((name) => name === wanted) ?? listed.find(seemsToTalk) ?? listed[0];
  if (found !== undefined) return found;
  const message = `No model is named, and the list of models is empty. ${remedy}`;
  throw new GatewayError("missing_required_parameter", message, { param: "model" });
}

async function read(list: () => Promise<readonly string[]>, remedy: string): Promise<readonly string[]> {
  try {
    return await list();
  } catch (cause) {
    const { code, message } = toGatewayError(cause);
    // Whoever is refused would be so with a name too.
    if (code === "adapter_refused") throw cause;
    const all = `No model is named, and the list of models cannot be had: ${message} ${remedy}`;
    throw new GatewayError(code, all, { cause });
  }
}
