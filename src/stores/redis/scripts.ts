/** All scripts of the Redis store. Those that write are fenced: they refuse what was sent on an older connection. */
import * as importing from "./lua/import.ts";
import * as keeping from "./lua/keeping.ts";
import * as lease from "./lua/lease.ts";
import * as loose from "./lua/loose.ts";
import * as names from "./lua/names.ts";
import * as reading from "./lua/reading.ts";
import * as leaving from "./lua/removal.ts";

export const scripts = { ...lease, ...names, ...reading, ...loose, ...keeping, ...leaving, ...importing };
