/** Closes all, even if some fail; then throws the first failure. */
export async function closeAll(all: Iterable<{ close?(): Promise<void> }>): Promise<void> {
  const closings = await Promise.allSettled(Array.from(all, async (each) => each.close?.()));
  for (const closing of closings) if (closing.status === "rejected") throw closing.reason;
}
