/** A connection to Redis that can be cut: requests arrive, and answers may not. */
import { once } from "node:events";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";

export interface Proxy {
  readonly port: number;
  /**
   * `lose`: the next answer is lost, with the connection. `refuse`: the same, and new connections are refused. `hold`:
   * requests are held back, and new connections are refused.
   */
  mode: "pass" | "lose" | "refuse" | "hold";
  /** Which answers can be lost. */
  loses: RegExp;
  /** How many connections were made. */
  connections: number;
  /** Cuts every connection. */
  cut(): void;
  /** From now on everything on the existing connections is lost, without an error. */
  silence(): void;
  /** Delivers what was held back. */
  deliver(): Promise<void>;
  close(): Promise<void>;
}

/** `delayMs`: the latency of requests. */
export async function startProxy(target: number, delayMs = 0): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const held = new Map<Socket, Buffer>();
  const server = createServer((near) => {
    if (proxy.mode === "refuse" || proxy.mode === "hold") return void near.destroy();
    proxy.connections += 1;
    const far = createConnection(target, "127.0.0.1");
    const cut = () => {
      near.destroy();
      if (!held.has(far)) far.destroy();
    };
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", cut).on("close", cut);
    }
    near.on("data", (bytes) => {
      if (proxy.mode === "hold") held.set(far, Buffer.concat([held.get(far) ?? Buffer.of(), bytes]));
      else if (delayMs === 0) far.write(bytes);
      else setTimeout(() => far.write(bytes), delayMs);
    });
    far.on("data", (bytes) => {
      const isSpared = proxy.mode === "lose" && !proxy.loses.test(String(bytes));
      if (proxy.mode === "pass" || isSpared) return void near.write(bytes);
      if (proxy.mode === "lose") proxy.mode = "pass";
      cut();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const proxy: Proxy = {
    port: (server.address() as AddressInfo).port,
    mode: "pass",
    loses: /^/,
    connections: 0,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    silence() {
      for (const socket of sockets) socket.removeAllListeners("data").resume();
    },
    async deliver() {
      for (const [far, bytes] of held) {
        far.write(bytes);
        await once(far, "data");
      }
    },
    async close() {
      proxy.cut();
      server.close();
      await once(server, "close");
    },
  };
  return proxy;
}
