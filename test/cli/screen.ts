/** The command line within this process, on a terminal that remembers what was said. */
import assert from "node:assert/strict";
import type { House } from "../../src/cli/house.ts";
import { run } from "../../src/cli/main.ts";
import type { Terminal } from "../../src/cli/terminal.ts";

export interface Ended {
  readonly code: number;
  readonly printed: string;
  readonly complained: string;
}

/** Runs `portico ARGS` in a folder. */
export function portico(folder: string, ...args: readonly string[]): Promise<Ended> {
  return runIn(folder, args);
}

/** The same, in a house of the test's own if there is one. */
export async function runIn(folder: string, args: readonly string[], house?: House): Promise<Ended> {
  const printed: string[] = [];
  const complained: string[] = [];
  const terminal: Terminal = {
    folder,
    env: {},
    now: () => new Date(),
    print: (line) => void printed.push(line),
    complain: (line) => void complained.push(line),
    probe: async () => undefined,
    isInteractive: false,
    onSignal: () => {},
    outlastOutput: () => {},
    exit: () => assert.fail("nothing ends the process"),
  };
  const code = await run(args, terminal, house);
  return { code, printed: printed.join("\n"), complained: complained.join("\n") };
}
