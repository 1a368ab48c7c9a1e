import { after, before, describe } from "node:test";
import { createRedisStore } from "../../src/stores/redis.ts";
import { describeStore } from "./contract.ts";
import { describeAlike } from "./redis-alike.ts";
import { describeGateway } from "./redis-gateway.ts";
import { describeOtherGateways, describeLeftovers, describeOpening, describeFailures } from "./redis-life.ts";
import { describeQueue } from "./redis-line.ts";
import { describePeers } from "./redis-peers.ts";
import { describeOperator } from "./redis-operator.ts";
import { describeProperty } from "./redis-property.ts";
import { describeScripts } from "./redis-scripts.ts";
import { describeUses } from "./redis-uses.ts";
import { type RedisServer, startRedis, whyNoRedis } from "./redis-server.ts";

describe("Redis", { skip: whyNoRedis() ?? false }, () => {
  let server: RedisServer;
  before(async () => {
    server = await startRedis();
  });
  after(() => server.remove());

  describeStore("the Redis store", (now) => createRedisStore({ url: server.url(), now }));
  for (const describePart of [
    describeOtherGateways,
    describeFailures,
    describeOpening,
    describeLeftovers,
    describePeers,
    describeQueue,
    describeGateway,
    describeOperator,
    describeProperty,
    describeAlike,
    describeScripts,
    describeUses,
  ]) {
    describePart(() => server);
  }
});
