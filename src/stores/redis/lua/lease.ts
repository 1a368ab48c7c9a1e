/** The Lua of a gateway's lease: what shows that it is there, and which of its connections is the newest. */
import { evenWhenFull, toScript } from "../script.ts";

/** Takes the lease, or holds on to it; what an older connection says comes too late. What a gateway shows is its name and a number. */
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
