import { after, before, describe } from "node:test";
import { createRedisStore } from "../../src/stores/redis.ts";
import { describeStore } from "./contract.ts";
import { describeAlike } from "./redis-alike.ts";
import { describeGateway } from "./redis-gateway.ts";
import { describeBeside, describeLeftovers, describeOpening, describeTrouble } from "./redis-life.ts";
import { describeLine } from "./redis-line.ts";
import { describeNeighbours } from "./redis-peers.ts";
import { describeOperator } from "./redis-operator.ts";
import { describeProperty } from "./redis-property.ts";
import { describeScripts } from "./redis-scripts.ts";
import { type RedisServer, startRedis, whyNoRedis } from "./redis-server.ts";

describe("Redis", { skip: whyNoRedis() ?? false }, () => {
  let server: RedisServer;
  before(async () => {
    server = await startRedis();
  });
  after(() => server.remove());

  describeStore("the Redis store", (now) => createRedisStore({ url: server.url(), now }));
  for (const tell of [
    describeBeside,
    describeTrouble,
    describeOpening,
    describeLeftovers,
    describeNeighbours,
    describeLine,
    describeGateway,
    describeOperator,
    describeProperty,
    describeAlike,
    describeScripts,
  ]) {
    tell(() => server);
  }
});
