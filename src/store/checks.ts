/** Checks parsed JSON against a description of its form, and tells where the first fault is. */

/** Where a value differs from its form: a path below the value, such as `[0].content`, and how. */
export interface Fault {
  readonly path: string;
  readonly kind: "invalid" | "missing" | "unknown";
}

declare const checked: unique symbol;

/** Returns the first fault. `Value` is exactly the type of the values without a fault. */
export type Check<Value> = ((value: unknown) => Fault | undefined) & {
  readonly [checked]?: (value: Value) => Value;
};

/** The type of what has no fault. */
export type Checked<Its> = Its extends Check<infer Value> ? Value : never;

/** A check for every field of a type. A forgotten field is a compile error. */
export type Shape<Value> = { readonly [Name in keyof Value & string]-?: Check<Value[Name]> };

/** The same for each type of a union. A field that types share is checked for each of them. */
export type Shapes<Union extends { readonly type: string }> = {
  readonly [Type in Union["type"]]: Shape<Omit<Extract<Union, { readonly type: Type }>, "type">>;
};

export const invalid: Fault = { path: "", kind: "invalid" };
export const missing: Fault = { path: "", kind: "missing" };

export const checks =
  <Value>(isRight: (value: unknown) => boolean): Check<Value> =>
  (value) =>
    isRight(value) ? undefined : invalid;

export const isAnything = checks<unknown>(() => true);
export const isText = checks<string>((value) => typeof value === "string");
export const isFlag = checks<boolean>((value) => typeof value === "boolean");
export const isCount = checks<number>((value) => Number.isSafeInteger(value) && Number(value) >= 0);
export const isFields = checks<Readonly<Record<string, unknown>>>(isObject);

export const matches = <Text extends string>(pattern: RegExp): Check<Text> =>
  checks((value) => typeof value === "string" && pattern.test(value));

export const oneOf = <const Value>(...values: readonly Value[]): Check<Value> =>
  checks((value) => values.includes(value as Value));

export const optional =
  <Value>(check: Check<Value>): Check<Value | undefined> =>
  (value) =>
    value === undefined ? undefined : check(value);

export const nullable =
  <Value>(check: Check<Value>): Check<Value | null> =>
  (value) =>
    value === null ? undefined : check(value);

export const textOr =
  <Value>(check: Check<Value>): Check<string | Value> =>
  (value) =>
    typeof value === "string" ? undefined : check(value);

export const listOf =
  <Value>(check: Check<Value>): Check<readonly Value[]> =>
  (value) => {
    if (!Array.isArray(value)) return invalid;
    for (const [index, entry] of value.entries()) {
      const fault = check(entry);
      if (fault !== undefined) return within(`[${index}]`, fault);
    }
    return undefined;
  };

/** An object with these fields and no others. */
export const shaped = <Value extends object>(shape: Shape<Value>): Check<Value> => {
  const names = new Set(Object.keys(shape));
  const fields: readonly (readonly [name: string, check: Check<never>])[] = Object.entries(shape);
  return (value) => {
    if (!isObject(value)) return invalid;
    for (const [name, check] of fields) {
      const own = Object.hasOwn(value, name) ? value[name] : undefined;
      const fault = check(own);
      if (fault !== undefined) return within(`.${name}`, own === undefined ? missing : fault);
    }
    const other = Object.keys(value).find((name) => !names.has(name));
    return other === undefined ? undefined : { path: toStep(other), kind: "unknown" };
  };
};

/** An object of one of these types, each with fields of its own. */
export function oneOfTypes<Union extends { readonly type: string }>(shapes: Shapes<Union>): Check<Union> {
  const types = new Map(
    Object.entries<object>(shapes).map(([type, shape]) => [type, shaped({ ...shape, type: isAnything })]),
  );
  return (value) => {
    if (!isObject(value)) return invalid;
    const { type } = value;
    if (type === undefined) return within(".type", missing);
    const check = typeof type === "string" ? types.get(type) : undefined;
    return check === undefined ? within(".type", invalid) : check(value);
  };
}

/** For a form that has itself among its fields. */
export const later =
  <Value>(check: () => Check<Value>): Check<Value> =>
  (value) =>
    check()(value);

function within(step: string, { path, kind }: Fault): Fault {
  return { path: step + path, kind };
}

const maxNameCharacters = 40;

/** Names from outside may have any characters and any length. */
function toStep(name: string): string {
  return /^\w{1,40}$/.test(name) ? `.${name}` : `[${JSON.stringify(name.slice(0, maxNameCharacters))}]`;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether lists and objects nest at most `levels` deep in a value. */
export function isAsDeepAs(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((entry) => isAsDeepAs(levels - 1, entry));
}
