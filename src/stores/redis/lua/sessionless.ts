/** The Lua of what is kept outside of sessions. */
import { look, maxWalked, release } from "../script.ts";
import { place, shortInput } from "./tree.ts";

const walk = String.raw`
-- From some turns on through all that follows them outside of sessions, a bounded number: the ids of those that were seen, parents
-- first, from which to go on, when the newest was made, and whether one of them runs.
local function walk(ids, owner)
  local seen, rest, newest, runs, at = {}, {}, 0, 0, 1
  while at <= #ids and at <= ${maxWalked} do
    local id = ids[at]
    local turn = readTurn(id)
    if turn and turn[SESSION] == '' and (owner == '' or turn[OWNER] == owner) then
      seen[#seen + 1] = id
      newest = math.max(newest, tonumber(turn[CREATED]))
      if turn[STATUS] == 'running' then runs = 1 end
      for _, childId in ipairs(childrenOf(id)) do ids[#ids + 1] = childId end
    end
    at = at + 1
  end
  for each = at, #ids do rest[#rest + 1] = ids[each] end
  return { seen, rest, string.format('%.0f', newest), runs }
end
`;

export const walkSessionless = look(String.raw`
${walk}
local ids = {}
for at = 2, #ARGV do ids[#ids + 1] = ARGV[at] end
return walk(ids, ARGV[1])
`);

/**
 * How lists show trees, youngest root first, behind a root if one is given, of everybody or of one owner: at most a
 * number of them, and no more once enough turns were walked; of a large one, where to continue. Also returns the root
 * behind which the next are, if any, and its time, in case it is gone by then.
 */
export const listSessionless = look(String.raw`
${shortInput}
${place}
${walk}
local key, owner, limit, after, time = P .. 'loose', ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local page, walked, looked = {}, 0, 0
time = time or after and call('ZSCORE', key, after)
if after and not time then return false end
local start = after and countBefore(key, after, time) or 0
local roots = call('ZREVRANGE', key, start, start + 99)
while looked < #roots and #page < limit and walked < 200 and listedBytes < maxListedBytes do
  looked = looked + 1
  local id = roots[looked]
  local turn = readTurn(id)
  if turn and (owner == '' or turn[OWNER] == owner) then
    local seen, rest, newest = unpack(walk({ id }, ''))
    page[#page + 1] = { turn[OWNER], turn[CREATED], newest, #seen, id, shortInput(id), rest }
    walked = walked + #seen
  end
end
local last = (looked < #roots or #roots == 100) and roots[looked]
return { page, last and { last, call('ZSCORE', key, last) } }
`);

/** Deletes turns; their children then follow the first named, or nothing. Returns the change count and changed ids. */
export const removeBelow = release(String.raw`
local heir = readTurn(ARGV[2]) and ARGV[2] or ''
local changed = {}
for at = 3, #ARGV do
  if readTurn(ARGV[at]) then removeTurn(ARGV[at], heir, changed) end
end
return { call('INCR', P .. 'changes'), changed }
`);
