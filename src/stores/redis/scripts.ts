/** All scripts of the Redis store. Those that write are fenced: they refuse what was sent on an older connection. */
import * as importing from "./lua/import.ts";
import * as writing from "./lua/writing.ts";
import * as lease from "./lua/lease.ts";
import * as sessionless from "./lua/sessionless.ts";
import * as names from "./lua/names.ts";
import * as reading from "./lua/reading.ts";
import * as leaving from "./lua/removal.ts";

export const scripts = { ...lease, ...names, ...reading, ...sessionless, ...writing, ...leaving, ...importing };
