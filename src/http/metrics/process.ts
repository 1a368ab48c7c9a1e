/** Metrics of the process: CPU time, memory and event loop lag. */
import { type Family, toFamily } from "./family.ts";

/** Measures everything on demand, so that nothing is measured while nobody reads. */
export async function readProcess(): Promise<readonly Family[]> {
  const lagMs = await measureLag();
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  const { active } = performance.eventLoopUtilization();
  const since = performance.timeOrigin / 1000;
  return [
    toFamily("gauge", "process_start_time_seconds", "When the process started, since 1970.", since),
    toFamily("counter", "process_cpu_seconds_total", "CPU time of all threads.", (user + system) / 1_000_000),
    toFamily("gauge", "process_resident_memory_bytes", "Resident memory of the process.", rss),
    toFamily("gauge", "nodejs_heap_size_used_bytes", "JavaScript heap in use.", heapUsed),
    toFamily("gauge", "nodejs_eventloop_lag_seconds", "Event loop lag, at the moment of reading.", lagMs / 1000),
    toFamily("counter", "nodejs_eventloop_busy_seconds_total", "How long the event loop was busy.", active / 1000),
  ];
}

async function measureLag(): Promise<number> {
  const since = performance.now();
  await new Promise(setImmediate);
  return performance.now() - since;
}
