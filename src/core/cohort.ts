/**
 * Does side by side what came at the same time. What a turn goes through is far more code than a processor keeps at hand; when many turns
 * take the same step one after the other, all but the first find it there. As each step ends in a promise, those that begin together stay
 * together from step to step.
 */

/** So many share enough; with more of them the first would wait for the last. */
const most = 64;

/** `later` calls back once everything that has arrived by now was heard. Gives what adds a beginning. */
export function createCohort(later: (go: () => void) => void): (begin: () => void) => void {
  const waiting: (() => void)[] = [];
  let isCalled = false;

  function call(): void {
    if (isCalled || waiting.length === 0) return;
    isCalled = true;
    later(go);
  }

  function go(): void {
    isCalled = false;
    const together = waiting.splice(0, most);
    try {
      for (let begin = together.shift(); begin !== undefined; begin = together.shift()) begin();
    } finally {
      // One that fails must not keep the others from beginning.
      waiting.unshift(...together);
      call();
    }
  }

  return (begin) => {
    waiting.push(begin);
    call();
  };
}
