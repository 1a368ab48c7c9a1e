import assert from "node:assert/strict";
import { test } from "node:test";
import { createTakeRequest } from "../../src/http/rate.ts";
import { toToken } from "../scripted.ts";

test("how long it takes until all requests are left is told as OpenAI does, with hours", () => {
  const told = [
    { requestsPerMinute: 3000, taken: 1 },
    { requestsPerMinute: 40, taken: 1 },
    { requestsPerMinute: 1, taken: 6 },
    { requestsPerMinute: 1, taken: 60 },
    { requestsPerMinute: 40, taken: 3601 },
  ].map(({ requestsPerMinute, taken }) => {
    const take = createTakeRequest(() => new Date(0));
    let reset = "";
    for (let times = 0; times < taken; times++) {
      take(toToken("sk-1"), { requestsPerMinute, burst: 10_000 }, (headers) => {
        reset = headers["x-ratelimit-reset-requests"];
      });
    }
    return reset;
  });
  assert.deepEqual(told, ["20ms", "1.5s", "6m0s", "1h0m0s", "1h30m1.5s"]);
});
