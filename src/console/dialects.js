/** The two endpoints: how each is asked for a turn, and what its events say. */

/**
 * What an event says, as far as a reader sees it.
 * @typedef {object} Said
 * @property {string} [text]
 * @property {string} [reasoning]
 * @property {string} [refusal]
 * @property {string} [failure]
 * @property {{ readonly input: number, readonly output: number }} [usage]
 * @property {boolean} [ended] it ends an answer that is whole, or was cut by a limit
 */

/**
 * What is read here of the events of both streams.
 * @typedef {object} StreamEvent
 * @property {string} [type]
 * @property {string} [delta]
 * @property {{ readonly usage?: Readonly<Record<string, number>> | null }} [response]
 * @property {readonly { readonly delta?: Readonly<Record<string, string>>, readonly finish_reason?: string | null }[]} [choices]
 * @property {Readonly<Record<string, number>> | null} [usage]
 * @property {{ readonly message: string }} [error]
 */

/**
 * @typedef {object} Dialect
 * @property {string} path
 * @property {(model: string, text: string) => object} write the body of a request with one new message
 * @property {(event: StreamEvent) => Said} read
 */

/** @type {Dialect} */
export const responses = {
  path: "v1/responses",
  write: (model, text) => ({ model, input: text, stream: true }),
  read({ type, delta = "", response, error }) {
    switch (type) {
      case "response.output_text.delta":
        return { text: delta };
      case "response.refusal.delta":
        return { refusal: delta };
      case "response.reasoning_text.delta":
      case "response.reasoning_summary_text.delta":
        return { reasoning: delta };
      case "response.completed":
      case "response.incomplete":
        return { ended: true, ...toUsage(response?.usage?.["input_tokens"], response?.usage?.["output_tokens"]) };
      case "error":
        return { failure: error?.message ?? "The answer failed, without a reason." };
      default:
        return {};
    }
  },
};

/** @type {Dialect} */
export const chat = {
  path: "v1/chat/completions",
  write: (model, text) => ({
    model,
    messages: [{ role: "user", content: text }],
    stream: true,
    stream_options: { include_usage: true },
  }),
  read({ error, choices: [choice] = [], usage }) {
    if (error !== undefined) return { failure: error.message };
    const { content: text, refusal, reasoning_content: reasoning } = choice?.delta ?? {};
    return {
      ...(text && { text }),
      ...(refusal && { refusal }),
      ...(reasoning && { reasoning }),
      ...(choice?.finish_reason && { ended: true }),
      ...toUsage(usage?.["prompt_tokens"], usage?.["completion_tokens"]),
    };
  },
};

/**
 * Chat, if it is all that the gateway offers with its list of models; otherwise responses.
 * @param {Headers} headers
 */
export function chooseDialect(headers) {
  const offered = headers.get("x-portico-endpoints")?.split(", ") ?? [];
  return offered.includes(`/${chat.path}`) && !offered.includes(`/${responses.path}`) ? chat : responses;
}

/**
 * @param {number | undefined} input
 * @param {number | undefined} output
 * @returns {Pick<Said, "usage">}
 */
function toUsage(input, output) {
  return input === undefined || output === undefined ? {} : { usage: { input, output } };
}

/**
 * The same request for a terminal, with the token in a variable.
 * @param {URL} url
 * @param {string} session
 * @param {object} body
 */
export function toCurl(url, session, body) {
  return [
    `curl -N ${quote(url.href)}`,
    '-H "Authorization: Bearer $TOKEN"',
    '-H "Content-Type: application/json"',
    `-H ${quote(`X-Session-Id: ${session}`)}`,
    `-d ${quote(JSON.stringify(body))}`,
  ].join(" \\\n  ");
}

/** @param {string} text */
function quote(text) {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
