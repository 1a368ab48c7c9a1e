/** What is told of a request, once, when it is over. */
import type { Call } from "./call.ts";

type Tellable = Pick<Call, "id" | "request" | "response" | "path" | "names" | "record">;

export type Told = ReturnType<typeof toTold>;

const switchingProtocols = 101;

export function toTold({ id, request, response, path, names, record }: Tellable, endedAt: number) {
  const { failure, said, firstWordAt, startedAt, heading = said?.heading } = record;
  const { "x-client-request-id": clientId } = request.headers;
  const isSent = response.writableFinished || failure === undefined;
  return {
    kind: "request",
    id,
    clientId: typeof clientId === "string" ? clientId : undefined,
    trace: record.trace,
    method: request.method,
    path,
    route: record.route,
    objectId: record.objectId ?? (names.length > 0 ? names.join(" ") : undefined),
    isQuiet: record.isQuiet,
    status: record.isUpgraded ? switchingProtocols : isSent ? response.statusCode : failure.status,
    owner: record.owner,
    address: record.address,
    key: heading?.key,
    heading,
    // What is replayed was told before.
    answer: said?.isRepeated === true ? undefined : said?.answer,
    failure,
    isStreamed: record.isStreamed,
    firstMs: firstWordAt === undefined ? undefined : firstWordAt - startedAt,
    ms: endedAt - startedAt,
  } as const;
}
