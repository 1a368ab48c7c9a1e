/**
 * Does side by side what came at the same time. What a turn goes through is far more code than a processor keeps at hand; when many turns
 * take the same step one after the other, all but the first find it there. As each step ends in a promise, those that begin together stay
 * together from step to step.
 */

/** `later` calls back once everything that has arrived by now was heard. Gives what adds a beginning. */
export function createCohort(later: (go: () => void) => void): (begin: () => void) => void {
  let waiting: (() => void)[] = [];

  function go(): void {
    const together = waiting;
    waiting = [];
    for (const begin of together) begin();
  }

  return (begin) => {
    if (waiting.push(begin) === 1) later(go);
  };
}
