import { createMemoryStore } from "../../src/stores/memory.ts";
import { describeStore } from "./contract.ts";

describeStore("the memory store", createMemoryStore);
