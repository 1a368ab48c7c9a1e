/** The settings of a turn as the items of its conversation have changed them. */
import type { Dialect, OtherItem } from "../item.ts";
import type { Settings, Turn } from "../turn.ts";

/** For an adapter that does not know such items; one that does finds the change in them, and whoever asks in no or another dialect made none. */
export function updatedSettings({ settings, items }: Turn, speaks: (dialect: Dialect) => boolean): Settings {
  const { native } = settings;
  const changed: NonNullable<OtherItem["updates"]> = {};
  for (const item of items) {
    if (item.type !== "other" || item.updates === undefined || speaks(item.extra.dialect)) continue;
    if (native?.dialect === item.extra.dialect) Object.assign(changed, item.updates);
  }
  return Object.keys(changed).length === 0 ? settings : { ...settings, ...changed };
}
