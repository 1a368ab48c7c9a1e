/** The result of one check by the doctor. */
import { toPlain } from "../sessions/text.ts";

export interface Finding {
  readonly level: "ok" | "warning" | "problem";
  readonly about: string;
  /** What was found and, unless it is ok, what to do. */
  readonly text: string;
}

export function ok(about: string, text: string): Finding {
  return { level: "ok", about, text };
}

/** It works, but should be known. */
export function warning(about: string, text: string): Finding {
  return { level: "warning", about, text };
}

/** It does not work. */
export function problemWith(about: string, text: string): Finding {
  return { level: "problem", about, text };
}

/** Its one line. Text from servers in it can neither control the terminal nor pass for a line of ours. */
export function formatFinding({ level, about, text }: Finding): string {
  return toPlain(`${level.padEnd(7)}  ${about}: ${text.replaceAll(/\s+/g, " ")}`);
}

/** Bytes in readable units. */
export function formatBytes(bytes: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"] as const;
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${Math.round((bytes / 1000 ** step) * 10) / 10} ${units[step]}`;
}
