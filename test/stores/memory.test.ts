import { createMemoryStore } from "../../src/stores/memory.ts";
import { describeStore } from "./contract.ts";

describeStore("the memory store", (now) => createMemoryStore({ now }));
