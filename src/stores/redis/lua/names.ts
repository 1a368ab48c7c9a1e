/** The Lua of the names that gateways on one store take in turn. */
import { evenWhenFull, toScript } from "../script.ts";

/** With another key, such as one from before Redis came back empty, a gateway would meet nobody under its names. */
const refuseOtherKey = (key: string) => String.raw`
if redis.call('HGET', KEYS[1] .. 'secrets', 'idempotency') ~= ${key} then
  return redis.error_reply('REKEY names have another key')
end
`;

/**
 * Takes a name if it is free and nobody is ahead, else waits in its line. Waiters come again and again; one that has
 * not come for a while no longer waits. Does neither if somebody holds, or waits for, a name that goes first.
 */
export const enter = evenWhenFull(String.raw`
${refuseOtherKey("ARGV[5]")}
local held, line, seen = KEYS[1] .. 'held:' .. ARGV[1], KEYS[1] .. 'line:' .. ARGV[1], KEYS[1] .. 'seen:' .. ARGV[1]
local me, leaseMs, waitMs = ARGV[2], ARGV[3], tonumber(ARGV[4])
if ARGV[6] ~= '' and redis.call('HEXISTS', seen, me) == 0 then
  local heldBefore, lineBefore = KEYS[1] .. 'held:' .. ARGV[6], KEYS[1] .. 'line:' .. ARGV[6]
  if redis.call('EXISTS', heldBefore, lineBefore) > 0 then return redis.error_reply('BEHIND others go first') end
end
local holder = redis.call('GET', held)
-- So it was told already, but did not hear it.
if holder == me then return 1 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local first = redis.call('ZRANGE', line, 0, 0)[1]
while first and first ~= me and now - tonumber(redis.call('HGET', seen, first) or 0) > waitMs do
  redis.call('ZREM', line, first)
  redis.call('HDEL', seen, first)
  first = redis.call('ZRANGE', line, 0, 0)[1]
end
if not holder and (not first or first == me) then
  redis.call('SET', held, me, 'PX', leaseMs)
  if first then
    redis.call('ZREM', line, me)
    redis.call('HDEL', seen, me)
  end
  return 1
end
-- A clock that was set back lets nobody come in front.
local last = tonumber(redis.call('ZREVRANGE', line, 0, 0, 'WITHSCORES')[2] or 0)
redis.call('ZADD', line, 'NX', string.format('%.0f', math.max(time[1] * 1000000 + time[2], last + 1)), me)
redis.call('HSET', seen, me, now)
redis.call('PEXPIRE', line, waitMs * 2)
redis.call('PEXPIRE', seen, waitMs * 2)
return 0
`);

/** Releases a name, or a place in its line, and tells those who wait for it. */
export const leave = evenWhenFull(String.raw`
local held, line, seen = KEYS[1] .. 'held:' .. ARGV[1], KEYS[1] .. 'line:' .. ARGV[1], KEYS[1] .. 'seen:' .. ARGV[1]
if redis.call('GET', held) == ARGV[2] then redis.call('DEL', held) end
redis.call('ZREM', line, ARGV[2])
redis.call('HDEL', seen, ARGV[2])
if redis.call('EXISTS', line) == 1 then redis.call('PUBLISH', KEYS[1] .. 'freed', ARGV[1]) end
return 1
`);

/**
 * Renews names, each followed by its holder, and what is told under them. A name that was lost while Redis was away, or
 * that its successor does not know, is taken again if nobody else has it.
 */
export const hold = evenWhenFull(String.raw`
for at = 2, #ARGV, 2 do
  local held = KEYS[1] .. 'held:' .. ARGV[at]
  local holder = redis.call('GET', held)
  if not holder or holder == ARGV[at + 1] then
    redis.call('SET', held, ARGV[at + 1], 'PX', ARGV[1])
    redis.call('PEXPIRE', KEYS[1] .. 'told:' .. ARGV[at], ARGV[1] * 2)
  end
end
return 1
`);

/** Appends to what was told under a name. */
export const publish = toScript(String.raw`
local told = KEYS[1] .. 'told:' .. ARGV[1]
if redis.call('RPUSH', told, ARGV[2]) == 1 then redis.call('PEXPIRE', told, ARGV[3]) end
return 1
`);

/** Whether a name is taken, and what was told under it from a place on. */
export const readMessages = toScript(String.raw`
${refuseOtherKey("ARGV[4]")}
local told = KEYS[1] .. 'told:' .. ARGV[1]
return { redis.call('EXISTS', KEYS[1] .. 'held:' .. ARGV[1]), redis.call('LRANGE', told, ARGV[2], ARGV[3]) }
`);
