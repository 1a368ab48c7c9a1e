/**
 * Lets node:test follow tests, timers and sockets, but not every promise, which takes a tenth of all the time. A rejection that
 * nobody handles still fails the run; it is only not told of which test it is.
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
