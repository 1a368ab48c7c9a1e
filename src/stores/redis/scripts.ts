/** All scripts of the Redis store. Those that write are fenced: they refuse what a gateway sent on an older connection. */
import * as importing from "./lua/import.ts";
import * as keeping from "./lua/keeping.ts";
import * as lease from "./lua/lease.ts";
import * as loose from "./lua/loose.ts";
import * as names from "./lua/names.ts";
import * as reading from "./lua/reading.ts";
import * as leaving from "./lua/removal.ts";
import { evenWhenFull, fence, growth, removal, tree } from "./lua/tree.ts";
import { toScript } from "./script.ts";

const look = (text: string) => toScript(tree, text);
const grow = (text: string) => toScript(fence, tree, growth, text);
const change = (text: string) => toScript(fence, tree, growth, removal, text);
/** What gives room must work when there is none. */
const release = (text: string) => toScript(evenWhenFull, fence, tree, growth, removal, text);

export const scripts = {
  renew: toScript(evenWhenFull, lease.renew),
  release: toScript(lease.release),
  enter: toScript(evenWhenFull, names.enter),
  leave: toScript(evenWhenFull, names.leave),
  hold: toScript(evenWhenFull, names.hold),
  tell: toScript(names.tell),
  hear: toScript(names.hear),
  tryToWrite: toScript(fence, keeping.tryToWrite),

  findSession: toScript(reading.findSession),
  findTurn: look(reading.findTurn),
  readPath: look(reading.readPath),
  findByDigest: look(reading.findByDigest),
  findByExchange: look(reading.findByExchange),
  findKey: look(reading.findKey),
  readRunning: look(reading.readRunning),
  listSessions: look(reading.listSessions),
  exportSessions: look(reading.exportSessions),
  exportTurns: look(reading.exportTurns),
  exportTurnsOf: look(reading.exportTurnsOf),
  measureLoose: look(loose.measureLoose),
  walkLoose: look(loose.walkLoose),
  climbLoose: look(loose.climbLoose),

  commit: change(keeping.commit),
  begin: grow(keeping.begin),
  end: grow(keeping.end),
  createSession: grow(keeping.createSession),
  updateMetadata: toScript(fence, keeping.updateMetadata),
  replaceItems: toScript(fence, tree, keeping.replaceItems),

  deleteTurn: release(leaving.deleteTurn),
  removeBelow: release(loose.removeBelow),
  doomSession: release(leaving.doomSession),
  removeDoomed: release(leaving.removeDoomed),
  doomIdle: release(leaving.doomIdle),
  doomSurplus: release(leaving.doomSurplus),
  removeFailed: release(leaving.removeFailed),
  removeLeft: release(leaving.removeLeft),
  parentsBehind: look(leaving.parentsBehind),
  removeLeaves: release(leaving.removeLeaves),
  removeKeys: release(leaving.removeKeys),
  removePieces: release(leaving.removePieces),

  takeKey: toScript(fence, importing.takeKey),
  addSeals: toScript(fence, importing.addSeals),
  addSessions: grow(importing.addSessions),
  addTurns: grow(importing.addTurns),
  findStrayTip: look(importing.findStrayTip),
  setTips: toScript(fence, tree, importing.setTips),
  setHints: toScript(fence, tree, importing.setHints),
  doomSessions: release(importing.doomSessions),
} as const;
