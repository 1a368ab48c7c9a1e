/** The Lua of what is kept outside of sessions. */
import { firstWords } from "./reading.ts";

const below = String.raw`
-- The ids of a turn and of all that follows it outside of sessions, parents first.
local function listBelow(root)
  local ids = { root }
  local at = 1
  while at <= #ids do
    for _, list in ipairs(call('HMGET', turnKey(ids[at]), 'c', 'f')) do
      for number in string.gmatch(list or '', '%d+') do
        local id = idOf(number)
        if readTurn(id)[SESSION] == '' then ids[#ids + 1] = id end
      end
    end
    at = at + 1
  end
  return ids
end
`;

/** Trees by the ranks of their roots, of everybody or of one owner. */
export const listLoose =
  firstWords +
  below +
  String.raw`
local page = {}
for _, id in ipairs(call('ZREVRANGE', P .. 'loose', ARGV[1], ARGV[2])) do
  local turn = readTurn(id)
  if ARGV[3] == '' or turn[OWNER] == ARGV[3] then
    local ids, updated = listBelow(id), 0
    for _, each in ipairs(ids) do updated = math.max(updated, tonumber(readTurn(each)[CREATED])) end
    page[#page + 1] = { turn[OWNER], turn[CREATED], string.format('%.0f', updated), #ids, id, firstWords(id) }
  end
end
return page
`;

/** The ids of what came before a turn outside of sessions, of the turn, and of all that follows it; parents come first. */
export const aroundLoose =
  below +
  String.raw`
local turn = readTurn(ARGV[1])
if not turn or turn[SESSION] ~= '' then return {} end
local before = {}
local parent = turn[PARENT] ~= '' and readTurn(turn[PARENT])
while parent and parent[SESSION] == '' do
  before[#before + 1] = turn[PARENT]
  turn = parent
  parent = turn[PARENT] ~= '' and readTurn(turn[PARENT])
end
local ids = {}
for at = #before, 1, -1 do ids[#ids + 1] = before[at] end
for _, id in ipairs(listBelow(ARGV[1])) do ids[#ids + 1] = id end
return ids
`;
