/** The result of one check by the doctor. */
import { toLine } from "../sessions/text.ts";

export interface Finding {
  readonly level: "ok" | "warning" | "problem";
  /** What was found and, unless it is ok, what to do. */
  readonly text: string;
}

export function ok(text: string): Finding {
  return { level: "ok", text };
}

/** It works, but should be known. */
export function warning(text: string, remedy: string): Finding {
  return { level: "warning", text: `${text}; ${remedy}` };
}

/** It does not work. A text that says itself what to do needs no remedy. */
export function problem(text: string, remedy?: string): Finding {
  return { level: "problem", text: remedy === undefined ? text : `${text}; ${remedy}` };
}

/** Its one line. Text from servers in it can neither control the terminal nor pass for a line of ours. */
export function formatFinding(about: string, { level, text }: Finding): string {
  return `${level.padEnd(7)}  ${toLine(`${about}: ${text}`)}`;
}

/** Bytes in readable units. */
export function formatBytes(bytes: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"] as const;
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${Math.round((bytes / 1000 ** step) * 10) / 10} ${units[step]}`;
}
