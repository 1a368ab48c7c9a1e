/** The Lua of what running turns continue, which each gateway tells the others. */
import { evenWhenFull, look } from "../script.ts";
import { usedIds } from "./tree.ts";

/** A gateway's ids, as a JSON array, in place of those that it told before. It shows its lease, too. */
export const tellUse = evenWhenFull(String.raw`
local gateway = string.match(ARGV[1], '^(.+):%d+$')
if ARGV[2] == '[]' then call('HDEL', P .. 'used', gateway) else call('HSET', P .. 'used', gateway, ARGV[2]) end
return 1
`);

export const readUse = look(String.raw`
${usedIds}
return usedIds()
`);
