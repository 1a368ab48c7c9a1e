/** Says in one sentence why the gateway could not start, or why a file could not be written. */
import type { HttpConfig } from "../config/config.ts";
import { codeOf, messageOf } from "../core/errors.ts";

export function explainFailure(thrown: unknown, { bind, port }: HttpConfig): string {
  const code = codeOf(thrown);
  const isListening = thrown instanceof Error && "syscall" in thrown && thrown.syscall === "listen";
  const reason = messageOf(thrown);
  if (!isListening) return `Portico could not start: ${reason}`;
  if (bind.startsWith("unix:")) {
    return `gateway.http.bind: cannot listen on the socket ${bind.slice("unix:".length)} (${code}); choose another path, or remove what is there.`;
  }
  switch (code) {
    case "EADDRINUSE":
      return `gateway.http.port: port ${port} of ${bind} is in use by another program; stop it, or choose another port (--port).`;
    case "EACCES":
      return `gateway.http.port: no permission to listen on port ${port} of ${bind}; choose a port from 1024 up (--port).`;
    case "EADDRNOTAVAIL":
      return `gateway.http.bind: this machine has no address ${bind}; choose one of its own, or 127.0.0.1 (--bind).`;
    default:
      return `gateway.http.bind: cannot listen on ${bind}, port ${port}: ${reason}`;
  }
}

/** For a new file; `elsewhere` is how to write to another folder. */
export function explainWriting(thrown: unknown, file: string, elsewhere = "name a file in another folder"): string {
  const code = codeOf(thrown);
  if (code === "EEXIST") return `${file} exists and was left as it is; name another file.`;
  const closed = `you may not write in its folder; let its owner do it, or ${elsewhere}`;
  const remedies = new Map([
    ["ENOENT", "its folder does not exist; create it"],
    ["EACCES", closed],
    ["EPERM", closed],
    ["EROFS", `its disk is read-only; ${elsewhere}`],
    ["ENOSPC", "its disk is full; make room there"],
  ]);
  return `${file} cannot be written (${code}): ${remedies.get(code) ?? `check its folder, or ${elsewhere}`}.`;
}
