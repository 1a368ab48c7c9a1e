/** Metrics of the process: CPU time, memory, open files and event loop lag. */
import { readdir, readFile } from "node:fs/promises";
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
    ...(await readFiles()),
    toFamily("gauge", "nodejs_heap_size_used_bytes", "JavaScript heap in use.", heapUsed),
    toFamily("gauge", "nodejs_eventloop_lag_seconds", "Event loop lag, at the moment of reading.", lagMs / 1000),
    toFamily("counter", "nodejs_eventloop_busy_seconds_total", "How long the event loop was busy.", active / 1000),
  ];
}

/** Only Linux tells, and not where no further file can be opened: the other metrics must be readable even then. */
async function readFiles(): Promise<readonly Family[]> {
  const open = await readdir("/proc/self/fd").catch(() => undefined);
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const [, most] = /^Max open files +(\d+)/m.exec(limits) ?? [];
  if (open === undefined || most === undefined) return [];
  return [
    toFamily("gauge", "process_open_fds", "Open files and connections.", open.length),
    toFamily("gauge", "process_max_fds", "How many files and connections may be open.", Number(most)),
  ];
}

async function measureLag(): Promise<number> {
  const since = performance.now();
  await new Promise(setImmediate);
  return performance.now() - since;
}
