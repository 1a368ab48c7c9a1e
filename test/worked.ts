/** The CPU time of this thread so far, in ms: on a busy machine work takes longer, but needs no more CPU time. */
export function worked(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
