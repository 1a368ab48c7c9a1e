import { describeStore } from "./contract.ts";
import { createMemoryStore } from "./memory.ts";

describeStore("the memory store", (now) => createMemoryStore({ now }));
