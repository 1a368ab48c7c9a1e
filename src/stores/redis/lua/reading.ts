/** The Lua that reads. What belongs to a session being deleted is not found. */
import { maxTwins } from "../../../core/store.ts";
import { look, plain, refuseOtherKey } from "../script.ts";
import { place, shortInput } from "./tree.ts";

export const findSession = plain(String.raw`
${refuseOtherKey("hint", "ARGV[2]")}
local id = call('HGET', P .. 'hints', ARGV[1])
local session = id and call('HMGET', P .. 's:' .. id, 'owner', 'tip', 'resends')
return { call('GET', P .. 'changes'), id, session }
`);

export const findTurn = look(String.raw`
return { call('GET', P .. 'changes'), findOwn(ARGV[1], ARGV[2]) and tellTurn(ARGV[1]) or nil }
`);

/** From a turn towards its root: a bounded number of turns, and of bytes. */
export const readPath = look(String.raw`
local id, limit, maxBytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local steps, bytes = {}, 0
while id ~= '' and #steps < limit and bytes < maxBytes do
  local found = call('HMGET', turnKey(id), 'm', 'i', 'o')
  if not found[1] then break end
  local turn = cjson.decode(found[1])
  if #steps == 0 and not isThere(turn) then break end
  table.insert(found, 1, id)
  steps[#steps + 1] = found
  bytes = bytes + #found[3] + #found[4]
  id = turn[PARENT]
end
return { call('GET', P .. 'changes'), steps }
`);

/** The newest turns with the first of the digests or exchanges that any has, each with whether something follows it. */
export const findTwins = look(String.raw`
for index = 3, #ARGV do
  local list = call('HGET', P .. 'sd:' .. ARGV[1], ARGV[2] .. ARGV[index])
  if list then
    local twins = {}
    for number in string.gmatch(string.reverse(list), '%d+') do
      if #twins == ${maxTwins} then break end
      local id = idOf(string.reverse(number))
      twins[#twins + 1] = { id, call('HEXISTS', turnKey(id), 'c') }
    end
    return { index - 3, twins }
  end
end
return false
`);

export const findKey = look(String.raw`
local kept = call('GET', P .. 'k:' .. ARGV[1])
local turn = kept and readTurn(cjson.decode(kept)[2])
return turn and isThere(turn) and kept
`);

/** A page of running turns after an arrival number, each as id, owner and time, and the page's last number. */
export const readRunning = look(String.raw`
local page, number = {}, ARGV[1]
local found = call('ZRANGEBYSCORE', P .. 'running', '(' .. number, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for at = 1, #found, 2 do
  local turn = readTurn(found[at])
  page[#page + 1] = { found[at], turn[OWNER], turn[CREATED] }
  number = found[at + 1]
end
return { number, page }
`);

/**
 * The ids of a page of sessions, newest activity first, or of those that are named, behind one if it is given. Also
 * returns the last one's score, in case it is elsewhere when those behind it are wanted.
 */
export const listSessions = look(String.raw`
${place}
local owner, limit, after, score = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local key = owner == '' and P .. 'active' or P .. 'active:' .. owner
if score == '' then score = call('ZSCORE', P .. 'active', after) end
if after ~= '' and not score then return false end
local start = after == '' and 0 or countBefore(key, after, score)
local ids = {}
if ARGV[5] == '' then
  ids = call('ZREVRANGE', key, start, start + limit - 1)
else
  local ranks = {}
  for at = 6, #ARGV do
    local id = ARGV[at]
    ranks[id] = call('ZREVRANK', key, id)
    if ranks[id] and ranks[id] >= start then ids[#ids + 1] = id end
  end
  table.sort(ids, function(one, other) return ranks[one] < ranks[other] end)
  while #ids > limit do table.remove(ids) end
end
return { ids, #ids > 0 and call('ZSCORE', key, ids[#ids]) }
`);

/** How a list shows sessions: the first of these, as many as one script may read. One that is gone is an empty list. */
export const describeSessions = look(String.raw`
${shortInput}
local page = {}
for _, id in ipairs(ARGV) do
  if listedBytes >= maxListedBytes then break end
  local session = call('HMGET', sessionKey(id), 'owner', 'created', 'updated')
  local first = call('ZRANGE', P .. 'st:' .. id, 0, 0)[1]
  session[4], session[5] = call('ZCARD', P .. 'st:' .. id), id
  session[6] = first and shortInput(idOf(first)) or ''
  page[#page + 1] = session[1] and session or {}
end
return page
`);

/** A page of turns by arrival number, without those of sessions being deleted; and where to continue. */
export const exportTurns = look(String.raw`
local number, last, maxBytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local page, turns, bytes, look, bucket = {}, 0, 0, 0, nil
while number <= last and turns < 32 and bytes < maxBytes and look < 1000 do
  if not bucket or number % 100 == 0 then
    bucket, look = {}, look + 1
    local found = call('HGETALL', orderKey(number))
    for at = 1, #found, 2 do bucket[tonumber(found[at])] = found[at + 1] end
  end
  local turn = bucket[number] and tellTurn(bucket[number])
  if turn then
    turns, bytes = turns + 1, bytes + #turn[3] + #turn[4]
    if isThere(cjson.decode(turn[2])) then page[#page + 1] = turn end
  end
  number = number + 1
end
return { number, page }
`);

/** The same for one session. */
export const exportTurnsOf = look(String.raw`
local page, number, bytes, maxBytes = {}, tonumber(ARGV[2]), 0, tonumber(ARGV[4])
if call('EXISTS', sessionKey(ARGV[1])) == 0 then return { number, page } end
for _, found in ipairs(call('ZRANGEBYSCORE', P .. 'st:' .. ARGV[1], number, ARGV[3], 'LIMIT', 0, 32)) do
  if bytes >= maxBytes then break end
  local turn = tellTurn(idOf(found))
  page[#page + 1] = turn
  bytes = bytes + #turn[3] + #turn[4]
  number = tonumber(found) + 1
end
return { number, page }
`);
