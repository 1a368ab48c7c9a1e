/** Metrics of the process, measured while they are read, so that nothing is measured while nobody reads. */
import { readdir, readFile } from "node:fs/promises";
import type { Registry } from "./series.ts";

export async function readProcess({ gauges, counters }: Registry): Promise<void> {
  const since = performance.now();
  await new Promise(setImmediate);
  const lagMs = performance.now() - since;
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  const { active: busyMs } = performance.eventLoopUtilization();
  const files = await readFiles();
  const seconds = performance.timeOrigin / 1000;
  gauges("process_start_time_seconds", "When the process started, since 1970.")({}).value = seconds;
  counters("process_cpu_seconds_total", "CPU time of all threads.")({}).value = (user + system) / 1_000_000;
  gauges("process_resident_memory_bytes", "Resident memory of the process.")({}).value = rss;
  gauges("nodejs_heap_size_used_bytes", "JavaScript heap in use.")({}).value = heapUsed;
  gauges("nodejs_eventloop_lag_seconds", "Event loop lag, at the moment of reading.")({}).value = lagMs / 1000;
  counters("nodejs_eventloop_busy_seconds_total", "How long the event loop was busy.")({}).value = busyMs / 1000;
  if (files === undefined) return;
  gauges("process_open_fds", "Open files and connections.")({}).value = files.open;
  gauges("process_max_fds", "How many files and connections may be open.")({}).value = files.most;
}

/** Only Linux tells, and not where no further file can be opened: the rest must be readable even then. */
async function readFiles(): Promise<{ readonly open: number; readonly most: number } | undefined> {
  const open = await readdir("/proc/self/fd").catch(() => undefined);
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const [, most] = /^Max open files +(\d+)/m.exec(limits) ?? [];
  return open && most ? { open: open.length, most: Number(most) } : undefined;
}
