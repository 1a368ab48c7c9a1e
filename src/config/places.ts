/** Makes every path absolute, and fills in the store and the adapter the file leaves open. */
import { resolve } from "node:path";
import { isObject } from "./path.ts";
import type { AdapterOptions, FileShape } from "./schema.ts";

/** A file with nothing left open. */
export type PlacedFile = ReturnType<typeof withPlaces>;

/** Paths are relative to `folder`. */
export function withPlaces(file: FileShape, folder: string, adapterName: string, adapterOptions: AdapterOptions) {
  const { gateway } = file;
  const dataDir = resolve(folder, gateway.data_dir);
  const absolute = (text: string, scheme: string) =>
    text.startsWith(scheme) ? `${scheme}${resolve(folder, text.slice(scheme.length))}` : text;
  return {
    ...file,
    gateway: {
      ...gateway,
      data_dir: dataDir,
      default_adapter: adapterName,
      adapters: Object.fromEntries(
        Object.entries(gateway.adapters).map(([name, adapter]) => [
          name,
          placeOptions(adapter, folder, adapterOptions),
        ]),
      ),
      http: { ...gateway.http, bind: absolute(gateway.http.bind, "unix:") },
      sessions: {
        ...gateway.sessions,
        store: absolute(gateway.sessions.store ?? `sqlite:${resolve(dataDir, "portico.db")}`, "sqlite:"),
      },
    },
  };
}

/** An adapter's own options are paths if their schema says `format: "path"`. */
function placeOptions(adapter: unknown, folder: string, adapterOptions: AdapterOptions): unknown {
  if (!isObject(adapter)) return adapter;
  const forms = adapterOptions[String(adapter.type)]?.properties ?? {};
  const place = (key: string, value: unknown) =>
    typeof value === "string" && forms[key]?.format === "path" ? resolve(folder, value) : value;
  return Object.fromEntries(Object.entries(adapter).map(([key, value]) => [key, place(key, value)]));
}
