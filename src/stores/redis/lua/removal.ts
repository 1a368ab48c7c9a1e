/** The Lua that deletes, a bounded number at a time. */
import { look, release } from "../script.ts";
import { usedIds } from "./uses.ts";

/** Of many turns that follow it, at most a number move in one call. Returns whether the turn is gone, too. */
export const deleteTurn = release(String.raw`
local id = ARGV[3]
local turn = findOwn(id, ARGV[2])
if not turn then return false end
local parent = turn[PARENT]
local heir, takesShown = parent, false
if parent ~= '' and parent == id .. ARGV[4] then
  local c, f = unpack(call('HMGET', turnKey(parent), 'c', 'f'))
  takesShown = (c == turn[NUMBER] and not f) or (f == turn[NUMBER] and not c)
end
if takesShown then heir = readTurn(parent)[PARENT] end
local changed, moving = {}, {}
for _, field in ipairs({ 'c', 'f' }) do
  local numbers = call('SPOP', otherChildrenKey(id, field), tonumber(ARGV[5]) - #moving)
  for _, number in ipairs(numbers) do moving[#moving + 1] = idOf(number) end
end
if #moving > 0 then
  moveTurns(moving, heir, changed)
  return { call('INCR', P .. 'changes'), changed, 0 }
end
removeTurn(id, heir, changed)
if takesShown then removeTurn(parent, heir, changed) end
return { call('INCR', P .. 'changes'), changed, 1 }
`);

export const markSession = release(String.raw`
if call('HGET', sessionKey(ARGV[3]), 'owner') ~= ARGV[2] then return false end
doom(ARGV[3])
return call('INCR', P .. 'changes')
`);

/** Returns how many turns went, and the count of changes: with fewer than the limit, the session is gone as well. */
export const removeMarkedTurns = release(String.raw`
local id = ARGV[2] ~= '' and ARGV[2] or call('SRANDMEMBER', P .. 'doomed')
if not id then return false end
local limit, count = tonumber(ARGV[3]), 0
-- The newest first, as nothing follows them.
for _, list in ipairs({ 'sb:', 'st:' }) do
  local numbers = limit > count and call('ZREVRANGE', P .. list .. id, 0, limit - count - 1) or {}
  for _, number in ipairs(numbers) do removeTurn(idOf(number), '', {}) end
  count = count + #numbers
end
if count < limit then call('SREM', P .. 'doomed', id) end
return { count, call('INCR', P .. 'changes') }
`);

/** What running turns continue stays: what any gateway has told. */
const keepTold = String.raw`
${usedIds}
local isUsed, told = {}, usedIds()
for _, id in ipairs(told) do isUsed[id] = true end
`;

/** The same, and what the last arguments name. */
const keepUsed = (from: number) => String.raw`
${keepTold}
local used = #told + #ARGV - ${from - 1}
for at = ${from}, #ARGV do isUsed[ARGV[at]] = true end
`;

/** Dooms at most a number of sessions, those in use aside. */
const doomUnused = String.raw`
${keepUsed(4)}
local function doomUnused(ids, limit)
  local count = 0
  for _, id in ipairs(ids) do
    if count < limit and not isUsed[id] then
      doom(id)
      count = count + 1
    end
  end
  return count
end
`;

export const markIdle = release(String.raw`
${doomUnused}
local limit = tonumber(ARGV[3])
return doomUnused(call('ZRANGEBYSCORE', P .. 'active', '-inf', '(' .. ARGV[2], 'LIMIT', 0, limit + used), limit)
`);

/** Of owners with too many sessions, those idle for longest. */
export const markSurplus = release(String.raw`
${doomUnused}
local most, limit, count = tonumber(ARGV[2]), tonumber(ARGV[3]), 0
for _, owner in ipairs(call('SMEMBERS', P .. 'owners')) do
  local surplus = math.min(call('ZCARD', P .. 'active:' .. owner) - most, limit - count)
  if surplus > 0 then
    count = count + doomUnused(call('ZRANGE', P .. 'active:' .. owner, 0, surplus + used - 1), surplus)
  end
end
return count
`);

/** Failed and cancelled turns, by age. Returns the same as `removeAbandoned`; examining them costs nothing. */
export const removeFailed = release(String.raw`
local limit, at, changed = tonumber(ARGV[3]), 0, {}
while #changed < limit do
  local number = call('ZRANGEBYSCORE', P .. 'failed', '-inf', '(' .. ARGV[2], 'LIMIT', at, 1)[1]
  if not number then break end
  local id = idOf(number)
  -- Only an archive can have brought something that follows it.
  if call('HEXISTS', turnKey(id), 'c') + call('HEXISTS', turnKey(id), 'f') > 0 then at = at + 1
  else removeTurn(id, '', changed) end
end
return #changed > 0 and { 0, #changed, call('INCR', P .. 'changes'), changed }
`);

/**
 * Abandoned threads, each from its end up to where another branches off: a deleted turn's parent may then be an end.
 * Examining `looks` of them costs one deletion. Returns how many were examined and how many went, and all changed ids.
 */
export const removeAbandoned = release(String.raw`
${keepUsed(5)}
local limit, looks = tonumber(ARGV[3]), tonumber(ARGV[4])
local passed, looked, gone, changed = 0, 0, 0, {}

local function isFollowedByRunning(id)
  for _, number in ipairs(childNumbers(id, 'f')) do
    if readTurn(idOf(number))[STATUS] == 'running' then return true end
  end
  return false
end

local function isLeft(id)
  if not id or call('HEXISTS', turnKey(id), 'c') == 1 then return false end
  local turn = readTurn(id)
  if not turn or not isFollowable(turn) then return false end
  return call('HGET', sessionKey(turn[SESSION]), 'tip') ~= id
end

local function hasRoom() return gone + looked / looks < limit end

local function findOldEnd(id)
  local turn = readTurn(id)
  local time = turn and call('ZSCORE', P .. 'ends', turn[NUMBER])
  return time and tonumber(time) < tonumber(ARGV[2]) and turn[NUMBER]
end

-- What a deleted turn followed comes next, as it may be older than those that were passed over.
local function removeFrom(number)
  while number and hasRoom() do
    local id = idOf(number)
    local isGoing = not isUsed[id] and isLeft(id)
    if isUsed[id] or isGoing and isFollowedByRunning(id) then
      passed = passed + 1
      return
    end
    looked = looked + 1
    if not isGoing then
      call('ZREM', P .. 'ends', number)
      return
    end
    local parent = readTurn(id)[PARENT]
    removeTurn(id, '', changed)
    gone = gone + 1
    number = findOldEnd(parent)
  end
end

repeat
  local page = call('ZRANGEBYSCORE', P .. 'ends', '-inf', '(' .. ARGV[2], 'LIMIT', passed, limit)
  for _, number in ipairs(page) do removeFrom(number) end
until #page == 0 or not hasRoom()
return looked > 0 and { looked, gone, call(gone > 0 and 'INCR' or 'GET', P .. 'changes'), changed }
`);

/** How many turns and sessions have come; and the parents of turns outside of sessions after a number, if few came. */
export const parentsBehind = look(String.raw`
local last, count, parents = tonumber(ARGV[1]), tonumber(call('GET', P .. 'count') or 0), {}
if count - last > 1000 then return { count } end
for number = last + 1, count do
  local id = idOf(number)
  local turn = id and readTurn(id)
  if turn and turn[SESSION] == '' and turn[PARENT] ~= '' then parents[#parents + 1] = turn[PARENT] end
end
return { count, parents }
`);

/** Deletes turns outside of sessions, leaves first, up to one followed or in use. Returns how many are gone, and went. */
export const removeLeaves = release(String.raw`
${keepTold}
local gone, removed = 0, 0
local function isFollowed(id)
  for _, childId in ipairs(childrenOf(id)) do
    if readTurn(childId)[SESSION] == '' then return true end
  end
  return false
end
for at = 2, #ARGV do
  local turn = readTurn(ARGV[at])
  if turn and (isUsed[ARGV[at]] or isFollowed(ARGV[at])) then break end
  if turn then
    removeTurn(ARGV[at], '', {})
    removed = removed + 1
  end
  gone = gone + 1
end
return { gone, removed, call('INCR', P .. 'changes') }
`);

export const removeKeys = release(String.raw`
local names = call('ZRANGEBYSCORE', P .. 'keys', '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3])
for _, name in ipairs(names) do
  local kept = call('GET', P .. 'k:' .. name)
  if kept then strike(turnKey(cjson.decode(kept)[2]), 'k', name) end
  call('UNLINK', P .. 'k:' .. name)
  call('ZREM', P .. 'keys', name)
end
return #names
`);

export const removePieces = release(String.raw`
local numbers = call('ZRANGEBYSCORE', P .. 'pieces', '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3])
for _, number in ipairs(numbers) do
  call('HDEL', turnKey(idOf(number)), 'p')
  call('ZREM', P .. 'pieces', number)
end
return #numbers
`);
