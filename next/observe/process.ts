/** Metrics of the process, measured while they are read, so that nothing is measured while nobody reads. */
import { readdir, readFile } from "node:fs/promises";
import type { Reading } from "./series.ts";

export async function readProcess(): Promise<readonly Reading[]> {
  const since = performance.now();
  await new Promise(setImmediate);
  const lagMs = performance.now() - since;
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  const { active: busyMs } = performance.eventLoopUtilization();
  return [
    ["process_start_time_seconds", "gauge", "When it started, since 1970.", performance.timeOrigin / 1000],
    ["process_cpu_seconds_total", "counter", "CPU time of all threads.", (user + system) / 1_000_000],
    ["process_resident_memory_bytes", "gauge", "Resident memory.", rss],
    ...(await readFiles()),
    ["nodejs_heap_size_used_bytes", "gauge", "JavaScript heap in use.", heapUsed],
    ["nodejs_eventloop_lag_seconds", "gauge", "Event loop lag, at the moment of reading.", lagMs / 1000],
    ["nodejs_eventloop_busy_seconds_total", "counter", "How long the event loop was busy.", busyMs / 1000],
  ];
}

/** Only Linux tells, and not where no further file can be opened: the rest must be readable even then. */
async function readFiles(): Promise<readonly Reading[]> {
  const open = await readdir("/proc/self/fd").catch(() => undefined);
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const [, most] = /^Max open files +(\d+)/m.exec(limits) ?? [];
  if (open === undefined || most === undefined) return [];
  return [
    ["process_open_fds", "gauge", "Open files and connections.", open.length],
    ["process_max_fds", "gauge", "How many files and connections may be open.", Number(most)],
  ];
}
