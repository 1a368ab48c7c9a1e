/** What the thread has worked so far, in ms: a machine that is busy with others takes longer, but does no more. */
export function worked(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
