/**
 * Runs side by side what arrived at the same time. A turn goes through far more code than a processor caches; when many
 * turns take the same step one after the other, all but the first find it cached. Each step ends in a promise, so those
 * that begin together stay together from step to step.
 */

/** Enough to benefit; with more, the first would wait for the last. */
const most = 64;

/** `later` calls back once all that has arrived by now was read. Returns what adds a start, which must not throw. */
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
    for (const begin of waiting.splice(0, most)) begin();
    call();
  }

  return (begin) => {
    waiting.push(begin);
    call();
  };
}
