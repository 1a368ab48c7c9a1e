/** The Lua of what is kept outside of sessions. */
import { firstWords } from "./reading.ts";

const below = String.raw`
-- The ids of a turn and of all that follows it outside of sessions, parents first.
local function listBelow(root)
  local ids = { root }
  local at = 1
  while at <= #ids do
    for _, id in ipairs(childrenOf(ids[at])) do
      if readTurn(id)[SESSION] == '' then ids[#ids + 1] = id end
    end
    at = at + 1
  end
  return ids
end
`;

/**
 * What lists tell of trees by their roots, of everybody or of one owner: so many of them, and no more once enough turns were
 * walked through. Tells how many roots were looked at.
 */
export const measureLoose =
  firstWords +
  below +
  String.raw`
local page, looked, walked = {}, 0, 0
for at = 3, #ARGV do
  if #page >= tonumber(ARGV[2]) or walked >= 200 then break end
  local id, turn = ARGV[at], readTurn(ARGV[at])
  if turn and (ARGV[1] == '' or turn[OWNER] == ARGV[1]) then
    local ids, updated = listBelow(id), 0
    for _, each in ipairs(ids) do updated = math.max(updated, tonumber(readTurn(each)[CREATED])) end
    page[#page + 1] = { turn[OWNER], turn[CREATED], string.format('%.0f', updated), #ids, id, firstWords(id) }
    walked = walked + #ids
  end
  looked = looked + 1
end
return { looked, page }
`;

/** The ids of all that follows an owner's turn outside of sessions, parents first. */
export const belowLoose =
  below +
  String.raw`
local turn = readTurn(ARGV[2])
if not turn or turn[OWNER] ~= ARGV[1] or turn[SESSION] ~= '' then return {} end
local ids = listBelow(ARGV[2])
table.remove(ids, 1)
return ids
`;

/** Deletes turns; whoever followed them follows the first that is named, or nobody. Tells how many changes there were, and the ids of all that changed. */
export const removeBelow = String.raw`
local heir = readTurn(ARGV[2]) and ARGV[2] or ''
local changed = {}
for at = 3, #ARGV do
  local turn = readTurn(ARGV[at])
  if turn then removeTurn(ARGV[at], turn, heir, changed) end
end
return { call('INCR', P .. 'changes'), changed }
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
