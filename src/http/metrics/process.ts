/** Metrics of the process: CPU time, memory and event loop lag. */
import { type Family, toCounter, toGauge } from "./family.ts";

/** Measures everything on demand, so that nothing is measured while nobody reads. */
export async function readProcess(): Promise<readonly Family[]> {
  const lagMs = await measureLag();
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  const { active } = performance.eventLoopUtilization();
  return [
    toGauge("process_start_time_seconds", "When the process began, since 1970.", performance.timeOrigin / 1000),
    toCounter("process_cpu_seconds_total", "CPU time of all threads.", [[{}, (user + system) / 1_000_000]]),
    toGauge("process_resident_memory_bytes", "Memory that the process holds.", rss),
    toGauge("nodejs_heap_size_used_bytes", "Memory in use by what the gateway itself has made.", heapUsed),
    toGauge("nodejs_eventloop_lag_seconds", "How long work that was ready waited just now.", lagMs / 1000),
    toCounter("nodejs_eventloop_busy_seconds_total", "How long the event loop had something to do.", [
      [{}, active / 1000],
    ]),
  ];
}

async function measureLag(): Promise<number> {
  const since = performance.now();
  await new Promise(setImmediate);
  return performance.now() - since;
}
