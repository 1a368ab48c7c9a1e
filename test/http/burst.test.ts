/** Who comes in a crowd begins with it; who comes alone waits for nobody. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { createBurstWait } from "../../src/http/burst.ts";

/** A crowd whose rounds come by hand. */
function open() {
  const server = new EventEmitter();
  const looks: (() => void)[] = [];
  let time = 0;
  const crowd = createBurstWait(server, { soon: (look) => looks.push(look), now: () => time });
  let begun = 0;
  return {
    come: () => crowd(() => (begun += 1)),
    connect: () => server.emit("connection"),
    /** Ends a round that took so long; tells how many have begun. */
    end(ms = 0) {
      time += ms;
      looks.shift()?.();
      return begun;
    },
  };
}

test("who comes over a connection that was there begins at the end of the round", () => {
  const { come, end } = open();
  come();
  assert.equal(end(), 1);
});

test("while connections come, one a round, nobody begins, but not for long", () => {
  const { come, connect, end } = open();
  connect();
  come();
  for (let round = 1; round < 16; round += 1) {
    assert.equal(end(), 0, `round ${round}`);
    connect();
  }
  assert.equal(end(), 1);
});

test("when no more connections come, they begin", () => {
  const { come, connect, end } = open();
  connect();
  come();
  assert.equal(end(), 0);
  connect();
  assert.equal(end(), 0);
  assert.equal(end(), 1);
});

test("where a round takes long, nobody waits for the next one", () => {
  const { come, connect, end } = open();
  for (const begun of [1, 2]) {
    connect();
    come();
    assert.equal(end(3), begun - 1);
    connect();
    assert.equal(end(3), begun);
  }
});

test("each crowd has its own rounds", () => {
  const { come, connect, end } = open();
  come();
  for (let round = 1; round < 16; round += 1) {
    connect();
    end();
  }
  connect();
  assert.equal(end(), 1);
  connect();
  come();
  assert.equal(end(), 1);
  assert.equal(end(), 2);
});
