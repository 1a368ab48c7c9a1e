/** A browser for tests: Chromium without a window, driven over its DevTools protocol. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { WebSocket } from "ws";

const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const { CHROMIUM = "" } = process.env;
const program = CHROMIUM === "" ? places.find((path) => existsSync(path)) : CHROMIUM;

/** Why the tests in a browser cannot run here; false if they can. */
export const missing = program === undefined ? "no Chromium here (set CHROMIUM to where it is)" : false;

export interface Page {
  goto(url: string): Promise<void>;
  /** The value of an expression, once its promise is fulfilled. */
  evaluate(expression: string): Promise<unknown>;
  /** Waits until an expression is true in the page, checked with every frame. */
  until(condition: string): Promise<void>;
  /** Waits for an element, found by its selector and a part of its text, and clicks it. */
  click(selector: string, text?: string): Promise<void>;
  /** Puts text into a field as typing would. */
  type(selector: string, text: string): Promise<void>;
  /** Performs an act, and returns the text of the file of this name that is saved because of it. */
  save(name: string, act: () => Promise<void>): Promise<string>;
  send(method: string, params?: object): Promise<Readonly<Record<string, unknown>>>;
  /** Errors of scripts, and what the browser has refused to load. */
  readonly complaints: readonly string[];
}

/** Opens a browser with an empty profile; it is closed at the end of the tests. */
export async function openPage(context: Pick<TestContext, "after">): Promise<Page> {
  const profile = mkdtempSync(join(tmpdir(), "portico-chromium-"));
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"];
  const child = spawn(program ?? "", [...flags, `--user-data-dir=${profile}`, "about:blank"], {
    stdio: ["ignore", "ignore", "pipe"],
    // A group of its own, as the executable may be a script around the browser.
    detached: true,
  });
  const ended = once(child, "close");
  const socket = new WebSocket(await readAddress(child.stderr));
  await once(socket, "open");
  const { send, complaints, downloads } = createConversation(socket);
  context.after(async () => {
    socket.close();
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    await ended;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  });
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const inPage = (method: string, params = {}) => send(method, params, String(sessionId));
  for (const domain of ["Page", "Runtime", "Log"]) await inPage(`${domain}.enable`);
  return {
    ...createPage(inPage),
    complaints,
    async save(name, act) {
      const file = join(profile, name);
      await send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: profile, eventsEnabled: true });
      await act();
      // It has another name until it is complete.
      for (const late = performance.now() + timeoutMs; !existsSync(file); await wait(20)) {
        if (performance.now() < late) continue;
        const shown = await inPage("Runtime.evaluate", { expression: "document.body.innerText.slice(0, 500)" });
        throw new Error(`${name} was never saved: ${JSON.stringify({ downloads, complaints, shown })}`);
      }
      return readFileSync(file, "utf8");
    },
  };
}

/** How long anything may take. */
const timeoutMs = 10_000;

type Send = (method: string, params?: object, sessionId?: string) => Promise<Readonly<Record<string, unknown>>>;

function createPage(send: Send): Omit<Page, "complaints" | "save"> {
  async function evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = (await send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
      userGesture: true,
    })) as { result: { value: unknown }; exceptionDetails?: { exception?: { description?: string } } };
    if (exceptionDetails === undefined) return result.value;
    throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? "failed"}`);
  }

  async function until(condition: string): Promise<void> {
    const found = await evaluate(`new Promise((resolve) => {
      const late = performance.now() + ${timeoutMs};
      const look = () => (${condition}) ? resolve(true)
        : performance.now() > late ? resolve(document.body.innerText) : requestAnimationFrame(look);
      look();
    })`);
    if (found !== true) throw new Error(`It never came to ${condition}. The page says:\n${String(found)}`);
  }

  const find = (selector: string, text: string) =>
    `[...document.querySelectorAll(${JSON.stringify(selector)})].find((each) => each.checkVisibility() && !each.disabled && each.textContent.includes(${JSON.stringify(text)}))`;

  return {
    evaluate,
    until,
    send,
    async goto(url) {
      await send("Page.navigate", { url });
      await until(`location.href === ${JSON.stringify(url)} && document.readyState === "complete"`);
    },
    async click(selector, text = "") {
      await until(`${find(selector, text)} !== undefined`);
      await evaluate(`${find(selector, text)}.click()`);
    },
    async type(selector, text) {
      await until(`${find(selector, "")} !== undefined`);
      await evaluate(`${find(selector, "")}.focus()`);
      await evaluate(`${find(selector, "")}.select()`);
      await send("Input.insertText", { text });
    },
  };
}

/** Commands are sent with a number, and their answers have the same one; a message without one is an event. */
function createConversation(socket: WebSocket) {
  const waiting = new Map<number, PromiseWithResolvers<Readonly<Record<string, unknown>>>>();
  const complaints: string[] = [];
  /** The browser's events about files that it saves. */
  const downloads: string[] = [];
  let last = 0;
  socket.on("message", (bytes: Buffer) => {
    const { id, result, error, method, params } = JSON.parse(bytes.toString("utf8"));
    if (method === "Runtime.exceptionThrown") complaints.push(params.exceptionDetails.exception?.description ?? "");
    if (method?.startsWith("Browser.download")) downloads.push(JSON.stringify(params));
    if (method === "Log.entryAdded" && params.entry.level === "error") complaints.push(params.entry.text);
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) asked?.resolve(result);
    else asked?.reject(new Error(error.message));
  });
  const send: Send = (method, params = {}, sessionId = undefined) => {
    const asked = Promise.withResolvers<Readonly<Record<string, unknown>>>();
    waiting.set(++last, asked);
    socket.send(JSON.stringify({ id: last, method, params, sessionId }));
    return asked.promise;
  };
  return { send, complaints, downloads };
}

/** Reads from the browser's output where it can be reached. */
async function readAddress(output: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const piece of output) {
    text += String(piece);
    const [, address] = /DevTools listening on (\S+)/.exec(text) ?? [];
    if (address === undefined) continue;
    output.resume();
    return address;
  }
  throw new Error(`Chromium did not start: ${text}`);
}
