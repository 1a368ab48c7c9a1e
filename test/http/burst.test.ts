/** Requests that arrive in a burst begin together; a single request does not wait. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { createBurstWait } from "../../src/http/burst.ts";

/** A burst whose rounds are ended by hand. */
function open() {
  const server = new EventEmitter();
  const looks: (() => void)[] = [];
  let time = 0;
  const burst = createBurstWait(server, { soon: (look) => looks.push(look), now: () => time });
  let begun = 0;
  return {
    arrive: () => burst(() => (begun += 1)),
    connect: () => server.emit("connection"),
    /** Ends a round that took this long; returns how many have begun. */
    end(ms = 0) {
      time += ms;
      looks.shift()?.();
      return begun;
    },
  };
}

test("a request over an existing connection begins at the end of the round", () => {
  const { arrive, end } = open();
  arrive();
  assert.equal(end(), 1);
});

test("requests wait while new connections arrive in each round, but for a limited number of rounds", () => {
  const { arrive, connect, end } = open();
  connect();
  arrive();
  for (let round = 1; round < 16; round += 1) {
    assert.equal(end(), 0, `round ${round}`);
    connect();
  }
  assert.equal(end(), 1);
});

test("waiting requests begin when no more connections arrive", () => {
  const { arrive, connect, end } = open();
  connect();
  arrive();
  assert.equal(end(), 0);
  connect();
  assert.equal(end(), 0);
  assert.equal(end(), 1);
});

test("requests do not wait for the next round when rounds take long", () => {
  const { arrive, connect, end } = open();
  for (const begun of [1, 2]) {
    connect();
    arrive();
    assert.equal(end(3), begun - 1);
    connect();
    assert.equal(end(3), begun);
  }
});

test("each burst counts its own rounds", () => {
  const { arrive, connect, end } = open();
  arrive();
  for (let round = 1; round < 16; round += 1) {
    connect();
    end();
  }
  connect();
  assert.equal(end(), 1);
  connect();
  arrive();
  assert.equal(end(), 1);
  assert.equal(end(), 2);
});
