/** The Lua of a gateway's lease, which shows that it is alive and which of its connections is the newest. */
import { evenWhenFull, toScript } from "../script.ts";

/** Takes or renews the lease; an older connection comes too late. A gateway shows its name and connection number. */
export const renew = evenWhenFull(String.raw`
local name, number = string.match(ARGV[1], '^(.+):(%d+)$')
local held = redis.call('GET', KEYS[1] .. 'lease:' .. name)
if held and tonumber(string.match(held, '%d+$')) > tonumber(number) then return 0 end
redis.call('SET', KEYS[1] .. 'lease:' .. name, ARGV[1], 'PX', ARGV[2])
return 1
`);

export const release = toScript(String.raw`
return redis.call('DEL', KEYS[1] .. 'lease:' .. string.match(ARGV[1], '^(.+):%d+$'))
`);
