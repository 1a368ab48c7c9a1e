/** The Lua of a store's version and of its secrets. */
import { plain, write } from "../script.ts";

/**
 * Creates what is missing: the version, and the secrets that are named, each followed by its value then; marks a store
 * of an older version. Returns the version, the count of changes and the secrets; of a newer version only that. A Redis
 * that is full refuses to set even what is there, and then nothing could be deleted: it is marked when it has room.
 */
export const prepare = plain(String.raw`
local version = call('GET', P .. 'version')
if not version then call('SET', P .. 'version', ARGV[1])
elseif version == '1' then redis.pcall('SET', P .. 'version', ARGV[1])
elseif version ~= ARGV[1] then return { version } end
local found = { ARGV[1], call('GET', P .. 'changes') or '0' }
for at = 2, #ARGV, 2 do
  if call('HEXISTS', P .. 'secrets', ARGV[at]) == 0 then call('HSET', P .. 'secrets', ARGV[at], ARGV[at + 1]) end
  found[#found + 1] = call('HGET', P .. 'secrets', ARGV[at])
end
return found
`);

/** Whether hints are hashed with this key from now on, possible only while there are none; and the key before. */
export const takeKey = write(String.raw`
local before = call('HGET', P .. 'secrets', 'hint')
if before == ARGV[2] then return { 1, before } end
if call('HLEN', P .. 'hints') > 0 then return { 0, before } end
call('HSET', P .. 'secrets', 'hint', ARGV[2])
return { 1, before }
`);

/** Secrets that open what was sealed elsewhere. The first becomes the store's own if it has none yet. */
export const addSeals = write(String.raw`
local secrets = P .. 'secrets'
for at = 2, #ARGV do
  call('HSETNX', secrets, 'secret:seal', ARGV[at])
  if call('HGET', secrets, 'secret:seal') ~= ARGV[at] then call('HSETNX', secrets, 'foreign_seal:' .. ARGV[at], '') end
end
return 1
`);
