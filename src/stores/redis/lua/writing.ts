/** The Lua that adds turns. It judges a commit as `stores/verdict.ts` does, where nobody can write in between. */
import { change, grow, refuseOtherKey, write } from "../script.ts";

export const commit = change(String.raw`
local now, isAgain, isBegun, count = ARGV[2], ARGV[3] == '1', ARGV[4] == '1', tonumber(ARGV[5])
local at = 6
local new = {}
for each = 1, count do
  new[each] = takeTurn(at)
  at = at + TURN
end
local moveId, hint, hintKey, expectedTip, otherwise, resends = unpack(ARGV, at, at + 5)
local keyName, kept = ARGV[at + 6], ARGV[at + 7]
local first, last = new[1], new[count]
local owner = first.turn[OWNER]

local function isKept(id) return call('EXISTS', turnKey(id)) == 1 end

-- The answer to the first try was lost, and what it should tell was not.
if isAgain and isKept(last.id) and not (isBegun and readTurn(last.id)[STATUS] == 'running') then
  return { call('GET', P .. 'changes'), {} }
end
if hint ~= '' then ${refuseOtherKey("hint", "hintKey")} end

local session, tip, knownResends, number
local function judge()
  if isBegun then
    local running = findOwn(last.id, owner)
    if not running or running[STATUS] ~= 'running' then return 'refuse' end
  end
  if first.turn[PARENT] ~= '' then
    local parent = findOwn(first.turn[PARENT], owner)
    if not parent or not isFollowable(parent) then return 'refuse' end
  end
  local wanted = moveId ~= '' and moveId or first.turn[SESSION]
  if wanted == '' then return 'keep' end
  session = wanted
  if hint ~= '' then session = call('HGET', P .. 'hints', hint) end
  local ownerOf
  if session then
    ownerOf, tip, knownResends, number = unpack(call('HMGET', sessionKey(session), 'owner', 'tip', 'resends', 'number'))
  end
  if not ownerOf then
    return hint ~= '' and expectedTip == '' and not isTaken(wanted) and 'create' or 'refuse'
  end
  if session ~= wanted or ownerOf ~= owner then return 'refuse' end
  if moveId == '' then return 'keep' end
  if (tip or '') == expectedTip then return 'move' end
  return (otherwise == 'branch' or otherwise == 'branch-if-resends' and knownResends) and 'keep' or 'refuse'
end

local verdict = judge()
if verdict == 'refuse' then return 0 end
for each = 1, count do
  if isKept(new[each].id) and not (isBegun and each == count) then return redis.error_reply('KEPT it is there already') end
end
if verdict == 'create' then
  addSession(moveId, owner, hint, last.id, resends, '', now, now)
elseif session then
  if resends ~= '' and not knownResends then call('HSET', sessionKey(session), 'resends', resends) end
  if verdict == 'move' then touch(session, owner, number, now, 'tip', last.id) else touch(session, owner, number, now) end
end
for each = 1, count do
  if not (isBegun and each == count and replaceRunning(new[each])) then addTurn(new[each]) end
end
-- What the tip moves away from, or stays away from.
local left = verdict == 'keep' and last.turn or verdict == 'move' and tip and tip ~= first.turn[PARENT] and readTurn(tip)
if left then noteEnd(left) end
keepKey(keyName, kept, last.id, now)
if #ARGV < at + 8 then return { call('GET', P .. 'changes'), {} } end
local changed = {}
for each = at + 8, #ARGV do
  local turn = readTurn(ARGV[each])
  if turn and turn[OWNER] == owner then removeTurn(ARGV[each], '', changed) end
end
return { call('INCR', P .. 'changes'), changed }
`);

export const begin = grow(String.raw`
local new = takeTurn(3)
if call('EXISTS', turnKey(new.id)) == 1 then return redis.error_reply('KEPT it is there already') end
if not isThere(new.turn) then new.turn[SESSION] = '' end
addTurn(new)
keepKey(ARGV[3 + TURN], ARGV[4 + TURN], new.id, ARGV[2])
return 1
`);

/** A failed or cancelled turn is kept even if its place was deleted meanwhile, but outside of it. */
export const end = grow(String.raw`
local new = takeTurn(2)
local turn = new.turn
local parent = turn[PARENT] ~= '' and findOwn(turn[PARENT], turn[OWNER])
if not parent or not isFollowable(parent) then turn[PARENT] = '' end
if not isThere(turn) then turn[SESSION] = '' end
return replaceRunning(new) and 1 or 0
`);

export const createSession = grow(String.raw`
local id, owner, time, metadata, hasShown = ARGV[2], ARGV[3], ARGV[4], ARGV[5], #ARGV > 5
local shown = hasShown and takeTurn(6)
if isTaken(id) or hasShown and call('EXISTS', turnKey(shown.id)) == 1 then return redis.error_reply('KEPT it is there already') end
addSession(id, owner, '', hasShown and shown.id or '', '', metadata, time, time)
if hasShown then addTurn(shown) end
return 1
`);

export const updateMetadata = write(String.raw`
local key = sessionKey(ARGV[2])
if call('HGET', key, 'owner') ~= ARGV[3] then return 0 end
call('HSET', key, 'metadata', ARGV[4])
return 1
`);

export const replaceItems = write(String.raw`
local turn = readTurn(ARGV[2])
if not turn then return false end
turn[GAP] = 1
call('HSET', turnKey(ARGV[2]), 'm', cjson.encode(turn), 'i', ARGV[3], 'o', ARGV[4])
return call('INCR', P .. 'changes')
`);

/** Fails while Redis is full, is read-only, or cannot write to its disk. */
export const tryToWrite = write(String.raw`
call('SET', P .. 'checked', '')
return 1
`);
