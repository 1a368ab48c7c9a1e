import { after, before, describe } from "node:test";
import { describeCluster } from "./redis-cluster.ts";
import { type RedisServer, startRedis, whyNoRedis } from "./redis-server.ts";

// Separate from the tests of a single server, as both take long.
describe("Redis, several servers", { skip: whyNoRedis() ?? false }, () => {
  let server: RedisServer;
  before(async () => {
    server = await startRedis();
  });
  after(() => server.remove());

  describeCluster(() => server);
});
