/**
 * The Lua that all scripts share: how turns and sessions are kept in Redis, and how a turn gets its place in the tree.
 *
 * Every key begins with the store's prefix in braces, so that all of them are in one slot of a cluster.
 *
 * - `t:<turn>`: a hash. `m` what scripts must know of the turn, as a JSON array; `i`, `o` input and output; `t` what
 *   was told, `n` the memo, `p` the pieces; `c` the numbers of its children, `f` of those not followable; `k` its keys.
 *   `tc:<turn>`, `tf:<turn>`: sets of the other children's numbers, only while the list in the hash is long.
 * - `o:<n>`: a hash of a hundred arrival numbers to ids. Numbers are a tenth as long, so lists of turns use them.
 * - `s:<session>`: a hash. `st:<session>`: its turns, sorted; `sb:<session>`: those failed, cancelled or running.
 *   `sd:<session>`: a hash of digests, each with a `d` before it, and exchanges, with an `x`, to its turns' numbers.
 * - `hints`, `active`, `active:<owner>`, `owners`: sessions by hint, and by the time of their last turn.
 * - `k:<hash>`, `keys`: what is known of an idempotency key, and all of them by age.
 * - `loose`, `running`, `pieces`: roots outside of sessions, running turns, and numbers of turns with pieces by end.
 * - `failed`: the numbers of failed and cancelled turns, by the time of their creation.
 * - `ends`: the numbers of turns with which a thread may end besides its session's tip, by the time of their creation.
 *   Whatever may turn a turn into an end notes it; whether something follows by now is checked when it is old.
 * - `doomed`: sessions that are deleted already, but some of their turns are not.
 * - `used`: a hash of gateways to the ids, as a JSON array, of the sessions and turns that their running turns continue.
 * - `lease:<gateway>`: it is alive. `held:<name>`, `line:<name>`, `seen:<name>`, `told:<name>`: see `names.ts`.
 * - `count` numbers turns and sessions; `changes` counts whatever invalidates a cached turn.
 */
import { maxReadBytes } from "../../beginning.ts";

/**
 * How many characters of numbers a turn lists: a list is rewritten for each number that comes or goes, so a turn that
 * thousands continue would make each of them slower, and long to delete.
 */
const maxListed = 1_000;

export const tree = String.raw`
local OWNER, SESSION, PARENT, STATUS, GAP, DIGEST, EXCHANGE, CREATED, NUMBER, ENDED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10

local function turnKey(id) return P .. 't:' .. id end
local function sessionKey(id) return P .. 's:' .. id end

-- To read a turn costs as much as five commands, so that each is read once.
local known = {}
local function readTurn(id)
  if known[id] then return known[id] end
  local packed = call('HGET', turnKey(id), 'm')
  known[id] = packed and cjson.decode(packed)
  return known[id]
end

local function isThere(turn)
  return turn[SESSION] == '' or call('EXISTS', sessionKey(turn[SESSION])) == 1
end

-- A turn that the owner has.
local function findOwn(id, owner)
  local turn = readTurn(id)
  return turn and turn[OWNER] == owner and isThere(turn) and turn
end

local function isFollowable(turn)
  local status = turn[STATUS]
  return status == 'completed' or status == 'incomplete' or status == 'shown'
end

local function cameToNothing(turn) return turn[STATUS] == 'failed' or turn[STATUS] == 'cancelled' end

local function turnsKey(turn) return P .. (isFollowable(turn) and 'st:' or 'sb:') .. turn[SESSION] end

local function orderKey(number) return P .. 'o:' .. math.floor(number / 100) end
local function idOf(number) return call('HGET', orderKey(number), number) end

local function otherChildrenKey(id, field) return P .. 't' .. field .. ':' .. id end

local function childNumbers(id, field)
  local list = call('HGET', turnKey(id), field) or ''
  local numbers = #list < ${maxListed} and {} or call('SMEMBERS', otherChildrenKey(id, field))
  for number in string.gmatch(list, '%d+') do numbers[#numbers + 1] = number end
  return numbers
end

-- The ids of all that follows a turn, with what came to nothing.
local function childrenOf(id)
  local ids = {}
  for _, field in ipairs({ 'c', 'f' }) do
    for _, number in ipairs(childNumbers(id, field)) do ids[#ids + 1] = idOf(number) end
  end
  return ids
end

-- All that a turn is, behind its id.
local function tellTurn(id)
  local turn = call('HMGET', turnKey(id), 'm', 'i', 'o', 't', 'p', 'n')
  table.insert(turn, 1, id)
  return turn
end
`;

/** Lists are read in steps, from the highest score down. */
export const place = String.raw`
-- How many are before those behind an id that had this score. If it is gone or has moved, others with that score are listed
-- again rather than left out.
local function countBefore(key, id, score)
  if call('ZSCORE', key, id) == score then return call('ZREVRANK', key, id) + 1 end
  return call('ZCOUNT', key, '(' .. score, '+inf')
end
`;

/** The input of a turn, if it is short. */
export const shortInput = String.raw`
-- A script reads no more once it has read so much: a pause of some milliseconds.
local listedBytes, maxListedBytes = 0, 1000000

local function shortInput(turnId)
  local isShort = turnId and call('HSTRLEN', turnKey(turnId), 'i') < ${maxReadBytes}
  local input = isShort and call('HGET', turnKey(turnId), 'i') or ''
  listedBytes = listedBytes + #input
  return input
end
`;

/** How turns are added, and how they move. */
export const growth = String.raw`
-- True: it is the first of its list.
local function enlist(key, field, number)
  if call('HSETNX', key, field, number) == 1 then return true end
  call('HSET', key, field, call('HGET', key, field) .. ' ' .. number)
  return false
end

-- True: it was the last of its list.
local function strike(key, field, number)
  local list = call('HGET', key, field)
  if not list then return false end
  local padded = ' ' .. list .. ' '
  local at = string.find(padded, ' ' .. number .. ' ', 1, true)
  if not at then return false end
  local left = string.sub(string.sub(padded, 1, at - 1) .. string.sub(padded, at + #number + 1), 2, -2)
  if left == '' then call('HDEL', key, field) else call('HSET', key, field, left) end
  return left == ''
end

-- The same for the children of a turn.
local function addChild(id, field, number)
  if call('HSTRLEN', turnKey(id), field) < ${maxListed} then return enlist(turnKey(id), field, number) end
  call('SADD', otherChildrenKey(id, field), number)
  return false
end

local function dropChild(id, field, number)
  if call('HSTRLEN', turnKey(id), field) < ${maxListed} then return strike(turnKey(id), field, number) end
  local others = otherChildrenKey(id, field)
  if call('SREM', others, number) == 1 then return false end
  local isLast = strike(turnKey(id), field, number)
  while call('HSTRLEN', turnKey(id), field) < ${maxListed} do
    local other = call('SPOP', others)
    if not other then return isLast end
    enlist(turnKey(id), field, other)
  end
  return false
end

-- Turns that nothing follows are counted in their sessions.
local function countEnd(sessionId, by)
  if sessionId ~= '' and call('EXISTS', sessionKey(sessionId)) == 1 then
    call('HINCRBY', sessionKey(sessionId), 'ends', by)
  end
end

local function noteEnd(turn)
  if turn[SESSION] ~= '' then call('ZADD', P .. 'ends', turn[CREATED], turn[NUMBER]) end
end

-- Tells the session of which it takes an end: nothing followed its parent before.
local function link(id, turn)
  local parent = turn[PARENT]
  if parent == '' then
    if turn[SESSION] == '' then call('ZADD', P .. 'loose', turn[CREATED], id) end
  elseif not isFollowable(turn) then
    addChild(parent, 'f', turn[NUMBER])
  elseif addChild(parent, 'c', turn[NUMBER]) then
    return readTurn(parent)[SESSION]
  end
  return ''
end

local function unlink(id, turn)
  local parent = turn[PARENT]
  if parent == '' then
    if turn[SESSION] == '' then call('ZREM', P .. 'loose', id) end
  elseif not isFollowable(turn) then
    dropChild(parent, 'f', turn[NUMBER])
  elseif dropChild(parent, 'c', turn[NUMBER]) then
    countEnd(readTurn(parent)[SESSION], 1)
    noteEnd(readTurn(parent))
  end
end

-- What a turn is made of: its id, what scripts know of it, input, output, told, pieces, memo.
local function takeTurn(at)
  return { id = ARGV[at], turn = cjson.decode(ARGV[at + 1]), parts = {
    'i', ARGV[at + 2], 'o', ARGV[at + 3], 't', ARGV[at + 4], 'p', ARGV[at + 5], 'n', ARGV[at + 6] } }
end
local TURN = 7

-- Keeps a hash: of its optional fields those that are not empty.
local function putHash(key, fields, optional)
  for at = 1, #optional, 2 do
    if optional[at + 1] ~= '' then
      fields[#fields + 1] = optional[at]
      fields[#fields + 1] = optional[at + 1]
    end
  end
  call('HSET', key, unpack(fields))
end

local function addTurn(new)
  local id, turn, parts = new.id, new.turn, new.parts
  local number = tostring(call('INCR', P .. 'count'))
  turn[NUMBER] = number
  known[id] = turn
  putHash(turnKey(id), { 'm', cjson.encode(turn) }, parts)
  call('HSET', orderKey(number), number, id)
  if turn[STATUS] == 'running' then call('ZADD', P .. 'running', number, id) end
  if cameToNothing(turn) then call('ZADD', P .. 'failed', turn[CREATED], number) end
  if parts[8] ~= '' and turn[ENDED] ~= '' then call('ZADD', P .. 'pieces', turn[ENDED], number) end
  local session = turn[SESSION]
  if session ~= '' then
    call('ZADD', turnsKey(turn), number, number)
    if turn[DIGEST] ~= '' then enlist(P .. 'sd:' .. session, 'd' .. turn[DIGEST], number) end
    if turn[EXCHANGE] ~= '' then enlist(P .. 'sd:' .. session, 'x' .. turn[EXCHANGE], number) end
  end
  local taken = link(id, turn)
  local given = isFollowable(turn) and session or ''
  -- Mostly a thread goes on, and its session has as many ends as before.
  if taken == given then return end
  countEnd(taken, -1)
  countEnd(given, 1)
end

-- Takes a turn out of everything by which it is found, but leaves what it is.
local function displace(id, turn)
  local number, session = turn[NUMBER], turn[SESSION]
  unlink(id, turn)
  call('HDEL', orderKey(number), number)
  call('ZREM', P .. 'running', id)
  call('ZREM', P .. 'pieces', number)
  if cameToNothing(turn) then call('ZREM', P .. 'failed', number) end
  if session == '' then return end
  call('ZREM', turnsKey(turn), number)
  call('ZREM', P .. 'ends', number)
  if turn[DIGEST] ~= '' then strike(P .. 'sd:' .. session, 'd' .. turn[DIGEST], number) end
  if turn[EXCHANGE] ~= '' then strike(P .. 'sd:' .. session, 'x' .. turn[EXCHANGE], number) end
  if isFollowable(turn) and call('HEXISTS', turnKey(id), 'c') == 0 then countEnd(session, -1) end
end

-- It gets a new number too, as it is only now that it arrives. Its keys stay.
local function replaceRunning(new)
  local running = findOwn(new.id, new.turn[OWNER])
  if not running or running[STATUS] ~= 'running' then return false end
  displace(new.id, running)
  call('HDEL', turnKey(new.id), 'i', 'o', 't', 'p', 'n')
  addTurn(new)
  return true
end

local function keepKey(name, kept, turnId, time)
  if name == '' then return end
  local before = call('GET', P .. 'k:' .. name)
  local known = before and cjson.decode(before)[2]
  if known and known ~= turnId then strike(turnKey(known), 'k', name) end
  if known ~= turnId then enlist(turnKey(turnId), 'k', name) end
  call('SET', P .. 'k:' .. name, kept)
  call('ZADD', P .. 'keys', time, name)
end

-- Sessions are sorted by the time of their last turn, and within a millisecond by their age. More fields may be given.
local function touch(id, owner, number, time, ...)
  local score = string.format('%.0f', time * 1024 + number % 1024)
  call('HSET', sessionKey(id), 'updated', time, ...)
  call('ZADD', P .. 'active', score, id)
  call('ZADD', P .. 'active:' .. owner, score, id)
end

local function isTaken(sessionId)
  return call('EXISTS', sessionKey(sessionId)) == 1 or call('SISMEMBER', P .. 'doomed', sessionId) == 1
end

-- Nobody else may have the hint.
local function addSession(id, owner, hint, tip, resends, metadata, created, updated)
  local number = call('INCR', P .. 'count')
  local fields = { 'owner', owner, 'number', number, 'created', created }
  putHash(sessionKey(id), fields, { 'hint', hint, 'tip', tip, 'resends', resends, 'metadata', metadata })
  if hint ~= '' then call('HSET', P .. 'hints', hint, id) end
  call('SADD', P .. 'owners', owner)
  touch(id, owner, number, updated)
end
`;

/** How turns and sessions are deleted. */
export const removal = String.raw`
-- These turns follow the heir from now on, or nobody. The ids of all that changed are put into the list.
local function moveTurns(ids, heir, changed)
  for _, id in ipairs(ids) do
    local turn = readTurn(id)
    turn[PARENT], turn[GAP] = heir, 1
    call('HSET', turnKey(id), 'm', cjson.encode(turn))
    countEnd(link(id, turn), -1)
    changed[#changed + 1] = id
  end
end

-- Whoever followed it follows the heir now, or nobody.
local function removeTurn(id, heir, changed)
  local turn = readTurn(id)
  displace(id, turn)
  moveTurns(childrenOf(id), heir, changed)
  for name in string.gmatch(call('HGET', turnKey(id), 'k') or '', '%S+') do
    local kept = call('GET', P .. 'k:' .. name)
    if kept and cjson.decode(kept)[2] == id then
      call('UNLINK', P .. 'k:' .. name)
      call('ZREM', P .. 'keys', name)
    end
  end
  if turn[SESSION] ~= '' and call('HGET', sessionKey(turn[SESSION]), 'tip') == id then
    if heir == '' then call('HDEL', sessionKey(turn[SESSION]), 'tip')
    else call('HSET', sessionKey(turn[SESSION]), 'tip', heir) end
  end
  call('UNLINK', turnKey(id), otherChildrenKey(id, 'c'), otherChildrenKey(id, 'f'))
  known[id] = nil
  changed[#changed + 1] = id
end

-- Makes a session and its turns invisible, and frees its hint.
local function doom(id)
  local owner, hint = unpack(call('HMGET', sessionKey(id), 'owner', 'hint'))
  if not owner then return end
  if hint and call('HGET', P .. 'hints', hint) == id then call('HDEL', P .. 'hints', hint) end
  call('ZREM', P .. 'active', id)
  call('ZREM', P .. 'active:' .. owner, id)
  if call('EXISTS', P .. 'active:' .. owner) == 0 then call('SREM', P .. 'owners', owner) end
  call('UNLINK', sessionKey(id), P .. 'sd:' .. id)
  call('SADD', P .. 'doomed', id)
end
`;
