/** How many tokens a request has, on the wire: `POST /v1/responses/input_tokens`. */

export function toTokenCount(tokens: number): object {
  return { object: "response.input_tokens", input_tokens: tokens };
}
