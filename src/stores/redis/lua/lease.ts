/** The Lua of a gateway's lease, which shows that it is alive and which of its connections is the newest. */
import { evenWhenFull, plain } from "../script.ts";

/** Takes or renews the lease; an older connection comes too late. A gateway shows its name and connection number. */
export const renew = evenWhenFull(String.raw`
local name, number = string.match(ARGV[1], '^(.+):(%d+)$')
local held = call('GET', P .. 'lease:' .. name)
if held and tonumber(string.match(held, '%d+$')) > tonumber(number) then return 0 end
call('SET', P .. 'lease:' .. name, ARGV[1], 'PX', ARGV[2])
return 1
`);

export const release = plain(String.raw`
local name = string.match(ARGV[1], '^(.+):%d+$')
call('HDEL', P .. 'used', name)
return call('DEL', P .. 'lease:' .. name)
`);
