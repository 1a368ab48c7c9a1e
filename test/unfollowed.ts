/**
 * Lets node:test track tests, timers and sockets, but not every promise, which takes a tenth of all the time. An
 * unhandled rejection still fails the run; only its test is not named.
 */
import { type AsyncHook, createHook } from "node:async_hooks";

const hook = createHook({});
const isWithoutPromises = Object.getOwnPropertySymbols(hook).find(
  ({ description }) => description === "kNoPromiseHook",
);
const hooks = Object.getPrototypeOf(hook) as AsyncHook;
const { enable } = hooks;

if (isWithoutPromises !== undefined) {
  hooks.enable = function () {
    return enable.call(Object.assign(this, { [isWithoutPromises]: true }));
  };
}
