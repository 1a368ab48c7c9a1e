/** A browser for tests: Chromium without a window, driven over its DevTools protocol. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { WebSocket } from "ws";
import { need } from "../harness/needs.ts";

const { skip, path: program } = need("chromium");

/** For a test that needs a browser. */
export const inBrowser = { skip, timeout: 60_000 };

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
  /** The address of everything that the page has asked for. */
  readonly requested: readonly string[];
}

/** One browser for all tests of a file, with an empty profile; each test has a tab of its own, signed in to nothing. */
export function shareBrowser(): () => Promise<Page> {
  let browser: ReturnType<typeof openBrowser> | undefined;
  after(async () => (await browser)?.close());
  return async () => (await (browser ??= openBrowser())).openTab();
}

async function openBrowser() {
  const profile = mkdtempSync(join(tmpdir(), "portico-chromium-"));
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"];
  const child = spawn(program, [...flags, `--user-data-dir=${profile}`, "about:blank"], {
    stdio: ["ignore", "ignore", "pipe"],
    // A group of its own, as the executable may be a script around the browser.
    detached: true,
  });
  const ended = once(child, "close");
  const socket = new WebSocket(await readAddress(child.stderr));
  await once(socket, "open");
  const conversation = createConversation(socket);
  return {
    openTab: () => openTab(conversation, profile),
    async close() {
      socket.close();
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      await ended;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function openTab({ send, heard }: ReturnType<typeof createConversation>, profile: string): Promise<Page> {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const inPage = (method: string, params = {}) => send(method, params, String(sessionId));
  const mine = heard(String(sessionId));
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await inPage(`${domain}.enable`);
  return {
    ...createPage(inPage),
    ...mine,
    async save(name, act) {
      const file = join(profile, name);
      await send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: profile });
      await act();
      // It has another name until it is complete.
      for (const late = performance.now() + timeoutMs; !existsSync(file); await wait(20)) {
        if (performance.now() > late) throw new Error(`${name} was never saved: ${mine.complaints.join(", ")}`);
      }
      return readFileSync(file, "utf8");
    },
  };
}

/** How long anything may take. */
const timeoutMs = 10_000;

type Send = (method: string, params?: object, sessionId?: string) => Promise<Readonly<Record<string, unknown>>>;

function createPage(send: Send): Omit<Page, "complaints" | "requested" | "save"> {
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
      // The page may take what is behind the # out of its address.
      const [address] = url.split("#");
      await until(`location.href.split("#")[0] === ${JSON.stringify(address)} && document.readyState === "complete"`);
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

/** Commands are sent with a number, and their answers have the same one; a message without one is an event of a tab. */
function createConversation(socket: WebSocket) {
  const waiting = new Map<number, PromiseWithResolvers<Readonly<Record<string, unknown>>>>();
  const tabs = new Map<string, { readonly complaints: string[]; readonly requested: string[] }>();
  let last = 0;
  socket.on("message", (bytes: Buffer) => {
    const { id, result, error, method, params, sessionId } = JSON.parse(bytes.toString("utf8"));
    const tab = tabs.get(sessionId);
    if (method === "Runtime.exceptionThrown")
      tab?.complaints.push(params.exceptionDetails.exception?.description ?? "");
    if (method === "Log.entryAdded" && params.entry.level === "error") tab?.complaints.push(params.entry.text);
    if (method === "Network.requestWillBeSent") tab?.requested.push(params.request.url);
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) asked?.resolve(result);
    else asked?.reject(new Error(error.message));
  });
  function heard(sessionId: string) {
    const tab = { complaints: [], requested: [] };
    tabs.set(sessionId, tab);
    return tab;
  }
  const send: Send = (method, params = {}, sessionId = undefined) => {
    const asked = Promise.withResolvers<Readonly<Record<string, unknown>>>();
    waiting.set(++last, asked);
    socket.send(JSON.stringify({ id: last, method, params, sessionId }));
    return asked.promise;
  };
  return { send, heard };
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
