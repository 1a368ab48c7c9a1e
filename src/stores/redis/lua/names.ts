/** The Lua of the names that gateways on one store take in turn. */
import { evenWhenFull, plain, refuseOtherKey } from "../script.ts";

const keysOfName = "local held, line, seen = P .. 'held:' .. ARGV[1], P .. 'line:' .. ARGV[1], P .. 'seen:' .. ARGV[1]";

/**
 * Takes a name if it is free and nobody is ahead, else waits in its line. Waiters come again and again; one that has
 * not come for a while no longer waits. Does neither if somebody holds, or waits for, a name that goes first.
 */
export const enter = evenWhenFull(String.raw`
${refuseOtherKey("idempotency", "ARGV[5]")}
${keysOfName}
local me, leaseMs, waitMs = ARGV[2], ARGV[3], tonumber(ARGV[4])
if ARGV[6] ~= '' and call('HEXISTS', seen, me) == 0 then
  local others = call('EXISTS', P .. 'held:' .. ARGV[6], P .. 'line:' .. ARGV[6])
  if others > 0 then return redis.error_reply('BEHIND others go first') end
end
local holder = call('GET', held)
-- So it was told already, but did not hear it.
if holder == me then return 1 end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local first = call('ZRANGE', line, 0, 0)[1]
while first and first ~= me and now - tonumber(call('HGET', seen, first) or 0) > waitMs do
  call('ZREM', line, first)
  call('HDEL', seen, first)
  first = call('ZRANGE', line, 0, 0)[1]
end
if not holder and (not first or first == me) then
  call('SET', held, me, 'PX', leaseMs)
  if first then
    call('ZREM', line, me)
    call('HDEL', seen, me)
  end
  return 1
end
-- A clock that was set back lets nobody come in front.
local last = tonumber(call('ZREVRANGE', line, 0, 0, 'WITHSCORES')[2] or 0)
call('ZADD', line, 'NX', string.format('%.0f', math.max(time[1] * 1000000 + time[2], last + 1)), me)
call('HSET', seen, me, now)
call('PEXPIRE', line, waitMs * 2)
call('PEXPIRE', seen, waitMs * 2)
return 0
`);

/** Releases a name, or a place in its line, and tells those who wait for it. */
export const leave = evenWhenFull(String.raw`
${keysOfName}
if call('GET', held) == ARGV[2] then call('DEL', held) end
call('ZREM', line, ARGV[2])
call('HDEL', seen, ARGV[2])
if call('EXISTS', line) == 1 then call('PUBLISH', P .. 'freed', ARGV[1]) end
return 1
`);

/**
 * Renews names, each followed by its holder, and what is told under them. A name that was lost while Redis was away, or
 * that its successor does not know, is taken again if nobody else has it.
 */
export const hold = evenWhenFull(String.raw`
for at = 2, #ARGV, 2 do
  local held = P .. 'held:' .. ARGV[at]
  local holder = call('GET', held)
  if not holder or holder == ARGV[at + 1] then
    call('SET', held, ARGV[at + 1], 'PX', ARGV[1])
    call('PEXPIRE', P .. 'told:' .. ARGV[at], ARGV[1] * 2)
  end
end
return 1
`);

/** Appends to what was told under a name. */
export const publish = plain(String.raw`
local told = P .. 'told:' .. ARGV[1]
if call('RPUSH', told, ARGV[2]) == 1 then call('PEXPIRE', told, ARGV[3]) end
return 1
`);

/** Whether a name is taken, and what was told under it from a place on. */
export const readMessages = plain(String.raw`
${refuseOtherKey("idempotency", "ARGV[4]")}
local told = P .. 'told:' .. ARGV[1]
return { call('EXISTS', P .. 'held:' .. ARGV[1]), call('LRANGE', told, ARGV[2], ARGV[3]) }
`);
