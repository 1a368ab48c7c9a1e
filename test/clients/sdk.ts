/** The official client with a gateway that its tests share, whose base URL is its only change. */
import OpenAI, { type ClientOptions } from "openai";
import { type Delta, call, say, shareGateway, token, usage, type Turn } from "../harness/house.ts";

const open = shareGateway();

export const weather = {
  name: "get_weather",
  description: "The weather of a city",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
  strict: true,
} as const;
export const person = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
} as const;

/** A client, and the model behind the gateway. Its script answers batches, turn by turn; the last goes on. */
export async function connect(...answers: readonly (readonly Delta[])[]) {
  const gateway = await open();
  gateway.model.script = answerInTurn(...answers);
  const connected = gateway.model.turns.length;
  return {
    address: gateway.address,
    client: createClient(gateway.address),
    /** What the model was asked since then. */
    turns: (): readonly Turn[] => gateway.model.turns.slice(connected),
    model: gateway.model,
  };
}

export function createClient(address: string, more: ClientOptions = {}): OpenAI {
  return new OpenAI({ baseURL: `${address}/v1`, apiKey: token, maxRetries: 0, ...more });
}

export function answerInTurn(...answers: readonly (readonly Delta[])[]) {
  let asked = 0;
  return async function* () {
    const answer = answers[Math.min(asked++, answers.length - 1)] ?? say("Good ", "day");
    for (const delta of answer) yield [delta];
    yield [{ type: "usage" as const, usage }];
  };
}

export const callWeather = (city: string, index = 0) =>
  call(`call_${city}`, weather.name, JSON.stringify({ city }), index);
