/** The rule of sessions once more, in lines of text: what a request must be told, what the model must see, what is kept. */
import { callIdOf, kindOf } from "./script.ts";

/** A stored turn. `said` is the talk that it ends: what its request showed or the gateway remembered, then its answer. */
export interface Turn {
  readonly parent: Turn | undefined;
  readonly said: readonly string[];
  readonly question: string;
  readonly instructions: readonly string[];
  /** The gateway gave it its memory. */
  readonly remembers: boolean;
}

export interface Session {
  readonly turns: Turn[];
  tip?: Turn;
  /** Its clients are known to show their history. */
  shows: boolean;
}

interface Place {
  readonly parent: Turn | undefined;
  readonly remembers: boolean;
  readonly leads: boolean;
  readonly learns: boolean;
  readonly told: string;
}

/** What the rule says of a request; `keep` is called with the answer of a turn that is stored. */
export interface Verdict {
  readonly told: string;
  /** Undefined: the request is refused. */
  readonly seen: readonly string[] | undefined;
  keep(answer: readonly string[]): void;
}

const isModel = (line: string) => kindOf(line) === "assistant" || kindOf(line) === "call";
const isSystem = (line: string) => kindOf(line) === "system";
const speaks = (lines: readonly string[]) => lines.some((line) => kindOf(line) === "user");

export function judge(session: Session, sent: readonly string[]): Verdict {
  const { tip, shows, turns } = session;
  const talk = sent.filter((line) => !isSystem(line));
  const instructions = sent.filter(isSystem);
  /** Where words of the model end that somebody answered, deepest first. */
  const ends = talk.flatMap((line, index) => (index > 0 && isModel(talk[index - 1]!) && !isModel(line) ? [index] : []));
  ends.reverse();
  const fresh = talk.slice(ends[0] ?? 0);
  const output = fresh.findLast((line) => kindOf(line) === "output");
  const maker = output === undefined ? undefined : findMaker(turns, callIdOf(output));
  const showsCall = output !== undefined && talk.some((line) => isCallOf(line, output));

  const endOf = (end: number) => turns.findLast((turn) => toKey(turn.said) === toKey(talk.slice(0, end)));
  const behind = ends.find((end) => endOf(end) !== undefined) ?? 0;
  const match = endOf(behind);
  const wasAsked = ends.some((end) => turns.some(({ question }) => question === toQuestion(talk.slice(0, end))));

  const given = { parent: undefined, remembers: false, leads: tip === undefined || shows, learns: false };
  function place(): Place {
    if (match !== undefined) {
      const spoke = speaks(talk.slice(behind));
      const told = turns.some(({ parent }) => parent === match) ? "forked" : "matched";
      return { ...given, parent: match, leads: shows || spoke || match === tip, learns: spoke, told };
    }
    if (maker !== undefined && (maker.remembers || !showsCall))
      return { ...given, parent: maker, remembers: true, leads: true, told: "continued" };
    if (ends.length > 0) return { ...given, learns: wasAsked && speaks(fresh), told: "foreign" };
    if (shows || tip === undefined) return { ...given, remembers: true, leads: true, told: "new" };
    return { ...given, parent: tip, remembers: true, leads: true, told: "continued" };
  }

  const { parent, remembers, leads, learns, told } = place();
  const remembered = remembers ? [...(parent?.said ?? []), ...fresh] : talk;
  const inherited = remembers && instructions.length === 0 ? instructionsOf(parent) : instructions;
  const paired = pair(remembered, turns);
  return {
    told,
    seen: paired && [...inherited, ...paired],
    keep(answer) {
      const said = [...remembered, ...answer];
      const turn = { parent, said, question: toQuestion(said), instructions, remembers };
      turns.push(turn);
      if (leads) session.tip = turn;
      session.shows ||= learns;
    },
  };
}

/** A talk in one text: how one side's words are cut does not count, and a call counts by its id alone. */
function toKey(lines: readonly string[]): string {
  return lines
    .map((line) => `${isModel(line) ? "model" : "caller"}|${kindOf(line) === "call" ? callIdOf(line) : line}`)
    .join("\n");
}

/** The talk up to the question that its last words of the model answer. */
function toQuestion(said: readonly string[]): string {
  return toKey(said.slice(0, said.findLastIndex((line) => !isModel(line)) + 1));
}

function findMaker(turns: readonly Turn[], callId: string): Turn | undefined {
  return turns.findLast(({ said }) => {
    const answer = said.slice(said.findLastIndex((line) => !isModel(line)) + 1);
    return answer.some((line) => kindOf(line) === "call" && callIdOf(line) === callId);
  });
}

function instructionsOf(turn: Turn | undefined): readonly string[] {
  for (let each = turn; each; each = each.parent) if (each.instructions.length > 0) return each.instructions;
  return [];
}

const isCallOf = (line: string, output: string) => kindOf(line) === "call" && callIdOf(line) === callIdOf(output);

/** Outputs behind their calls; calls without an output are left out. Undefined: an output's call is nowhere. */
function pair(lines: readonly string[], turns: readonly Turn[]): readonly string[] | undefined {
  const whole = lines.flatMap((line) => {
    if (kindOf(line) !== "output" || lines.some((other) => isCallOf(other, line))) return [line];
    const made = findMaker(turns, callIdOf(line))?.said.findLast((other) => isCallOf(other, line));
    return made === undefined ? [""] : [made, line];
  });
  if (whole.includes("")) return undefined;
  const answered = whole.filter(
    (line) => kindOf(line) !== "call" || whole.some((other) => kindOf(other) === "output" && isCallOf(line, other)),
  );
  const paired: string[] = [];
  for (const line of answered) {
    if (kindOf(line) !== "call") flush();
    if (kindOf(line) !== "output") paired.push(line);
  }
  flush();
  return paired;

  function flush(): void {
    const open = paired.slice(paired.findLastIndex((line) => kindOf(line) !== "call") + 1);
    for (const made of open) {
      const output = answered.findLast((line) => kindOf(line) === "output" && isCallOf(made, line));
      if (output !== undefined) paired.push(output);
    }
  }
}
