/** The Lua of what running turns continue, which each gateway tells the others. */
import { fencedEvenWhenFull, look } from "../script.ts";

/** What running turns of all gateways continue. One that is gone could not forget its own. */
export const usedIds = String.raw`
local function usedIds()
  local ids, found = {}, call('HGETALL', P .. 'used')
  for at = 1, #found, 2 do
    if call('EXISTS', P .. 'lease:' .. found[at]) == 1 then
      for _, id in ipairs(cjson.decode(found[at + 1])) do ids[#ids + 1] = id end
    else
      call('HDEL', P .. 'used', found[at])
    end
  end
  return ids
end
`;

/** A gateway's ids, as a JSON array, in place of those that it told before. */
export const tellUse = fencedEvenWhenFull(String.raw`
local gateway = string.match(ARGV[1], '^(.+):%d+$')
if ARGV[2] == '[]' then call('HDEL', P .. 'used', gateway) else call('HSET', P .. 'used', gateway, ARGV[2]) end
return 1
`);

export const readUse = look(String.raw`
${usedIds}
return usedIds()
`);
