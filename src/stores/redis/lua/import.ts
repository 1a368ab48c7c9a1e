/** The Lua that imports an archive, and undoes that. */
import { grow, release, write } from "../script.ts";

/**
 * Adds sessions, without their tips. Returns which of them are new, and whether another key stands in the way. A
 * session begun under the same hint meanwhile keeps it.
 */
export const addSessions = grow(String.raw`
local isSameKey = ARGV[2] == '1'
local added = {}
for at = 3, #ARGV, 8 do
  local id, owner, hint, _, resends, metadata, created, updated = unpack(ARGV, at, at + 7)
  if not isTaken(id) then
    if hint ~= '' and not isSameKey then return { added, 1 } end
    if hint ~= '' and call('HEXISTS', P .. 'hints', hint) == 1 then hint = '' end
    addSession(id, owner, hint, '', resends, metadata, created, updated)
    added[#added + 1] = id
  end
end
return { added }
`);

/** Returns which turns are new, and which are misplaced: the session or parent that they name, and if it exists. */
export const addTurns = grow(String.raw`
local added, misplaced = {}, {}
local function findMisplaced(turn)
  local session, parent = turn[SESSION], turn[PARENT]
  local owner = session ~= '' and call('HGET', sessionKey(session), 'owner')
  if session ~= '' and owner ~= turn[OWNER] then return { 'session', session, owner and 1 or 0 } end
  local found = parent ~= '' and readTurn(parent)
  if parent ~= '' and not (found and found[OWNER] == turn[OWNER]) then return { 'parent', parent, found and 1 or 0 } end
end
for at = 2, #ARGV, TURN do
  local new = takeTurn(at)
  local turn = new.turn
  if call('EXISTS', turnKey(new.id)) == 0 then
    local wrong = findMisplaced(turn)
    if wrong then misplaced[#misplaced + 1] = { new.id, unpack(wrong) }
    else
      addTurn(new)
      if isFollowable(turn) then noteEnd(turn) end
      added[#added + 1] = new.id
    end
  end
end
return { added, misplaced }
`);

/**
 * A turn deleted during the export is no tip; another session's may be: deletion moves a tip to its parent. Returns the
 * first of the sessions whose tip would be a turn of another owner, and that turn.
 */
export const setTips = write(String.raw`
local stray
for at = 2, #ARGV, 2 do
  local id, tip = ARGV[at], ARGV[at + 1]
  local owner = call('HGET', sessionKey(id), 'owner')
  local turn = owner and readTurn(tip)
  if turn and turn[OWNER] == owner then call('HSETNX', sessionKey(id), 'tip', tip)
  elseif turn then stray = stray or { id, tip } end
end
return stray or {}
`);

/** Of sessions without one. Returns how many did not get theirs, because another session has it. */
export const setHints = write(String.raw`
local taken = 0
for at = 2, #ARGV, 3 do
  local id, owner, hint = unpack(ARGV, at, at + 2)
  local of, own = unpack(call('HMGET', sessionKey(id), 'owner', 'hint'))
  if of == owner and not own then
    if call('HSETNX', P .. 'hints', hint, id) == 1 then call('HSET', sessionKey(id), 'hint', hint)
    else taken = taken + 1 end
  end
end
return taken
`);

export const markSessions = release(String.raw`
for at = 2, #ARGV do doom(ARGV[at]) end
return call('INCR', P .. 'changes')
`);
