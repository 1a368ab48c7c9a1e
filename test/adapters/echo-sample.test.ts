import assert from "node:assert/strict";
import { suite, test } from "node:test";
import * as fc from "fast-check";
import { Check } from "typebox/schema";
import { readPattern } from "../../src/adapters/echo/pattern.ts";
import { makeSample } from "../../src/adapters/echo/sample.ts";
import { worked } from "../worked.ts";

type Schema = Readonly<Record<string, unknown>>;

const plain = { optional: false, told: new Map<string, string>() };

function assertSample(schema: Schema, options = plain): unknown {
  const value = makeSample(schema, options);
  assert.ok(Check(schema, value), `${JSON.stringify(value)} does not satisfy ${JSON.stringify(schema)}`);
  return value;
}

suite("the sample of a JSON Schema", () => {
  test("satisfies any schema that a model is usually given", () => {
    fc.assert(
      fc.property(schemas, fc.boolean(), (schema, optional) => {
        assertSample(schema, {
          optional,
          told: new Map([
            ["a", "7"],
            ["b", "text"],
          ]),
        });
      }),
      { numRuns: 1_000, seed: 7 },
    );
  });

  test("is the same each time", () => {
    fc.assert(
      fc.property(schemas, (schema) => assert.deepEqual(makeSample(schema, plain), makeSample(schema, plain))),
      { numRuns: 50, seed: 7 },
    );
  });

  for (const format of "date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri url iri uri-reference iri-reference uri-template uuid json-pointer relative-json-pointer json-pointer-uri-fragment regex".split(
    " ",
  )) {
    test(`has the format ${format}, also when many distinct values are needed`, () => {
      const items = { type: "string", format };
      assert.notEqual(assertSample(items), "text");
      assertSample({ type: "array", items, minItems: 20, uniqueItems: true });
    });
  }

  const cases: readonly (readonly [what: string, schema: Schema, sample: unknown])[] = [
    [
      "ends a list that refers to itself",
      {
        $ref: "#/$defs/node",
        $defs: {
          node: {
            type: "object",
            properties: { next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } },
            required: ["next"],
          },
        },
      },
      { next: null },
    ],
    [
      "ends a tree that refers to its root",
      { type: "object", properties: { children: { type: "array", items: { $ref: "#" } } }, required: ["children"] },
      { children: [{ children: [] }] },
    ],
    [
      "ends at null where a schema is nullable",
      { type: "object", properties: { next: { $ref: "#", nullable: true } }, required: ["next"] },
      { next: null },
    ],
    ["takes the first value of an enum", { enum: ["low", "high"] }, "low"],
    ["takes the default when it fits", { type: "integer", default: 42 }, 42],
    ["ignores a default that does not fit", { type: "integer", minimum: 3, default: 1 }, 3],
    ["takes an example", { type: "string", examples: ["Ada"] }, "Ada"],
    ["prefers a value to null", { type: ["null", "boolean"] }, true],
    [
      "merges the parts of allOf",
      { allOf: [{ type: "number", minimum: 2.5 }, { type: "integer", multipleOf: 2 }, { multipleOf: 3 }] },
      6,
    ],
    ["satisfies exactly one part of oneOf", { oneOf: [{ type: "integer" }, { type: "number" }] }, 0.5],
    ["avoids what 'not' forbids", { type: "integer", not: { const: 0 } }, 1],
    [
      "contains what an array must contain",
      { type: "array", items: { type: "integer" }, contains: { minimum: 5 } },
      [5],
    ],
    [
      "follows prefixItems",
      { type: "array", prefixItems: [{ type: "string" }, { type: "boolean" }], items: false },
      ["text", true],
    ],
    [
      "adds properties until there are enough",
      { type: "object", minProperties: 2, additionalProperties: { type: "integer" } },
      { property1: 0, property2: 0 },
    ],
    ["supports decimal multiples", { type: "number", multipleOf: 0.1, exclusiveMinimum: 0.3 }, 0.4],
    ["counts down from a negative maximum", { type: "integer", exclusiveMaximum: -3 }, -4],
    [
      "makes properties with names of built-in properties",
      JSON.parse('{"type":"object","properties":{"__proto__":{"const":1}},"required":["__proto__","constructor"]}'),
      JSON.parse('{"__proto__":1,"constructor":"text"}'),
    ],
    ["follows escaped references", { $ref: "#/$defs/a~1b%20c", $defs: { "a/b c": { const: 1 } } }, 1],
  ];
  for (const [what, schema, sample] of cases) {
    test(what, () => {
      // The validator does not know OpenAPI's `nullable`.
      const value = what.includes("nullable") ? makeSample(schema, plain) : assertSample(schema);
      assert.deepEqual(value, sample);
    });
  }

  test("uses the value given for a property where the type allows it", () => {
    const told = new Map([
      ["count", "3"],
      ["name", "3"],
      ["open", "yes"],
      ["size", "9"],
      ["code", "abc"],
    ]);
    const schema = {
      type: "object",
      properties: {
        count: { type: "integer" },
        name: { type: "string" },
        open: { type: "boolean" },
        size: { type: "integer", maximum: 5 },
        code: { type: "string", pattern: "^x$" },
      },
    };
    assert.deepEqual(assertSample(schema, { optional: false, told }), {
      count: 3,
      name: "3",
      open: true,
      size: 0,
      code: "x",
    });
  });

  test("does not use an unchecked value for one choice because another has a pattern", () => {
    const choices = [{ type: "integer" }, { type: "string", pattern: "^[a-f]{3}$" }];
    assert.equal(assertSample({ anyOf: choices, default: "zzz" }), 0);
    const schema = { type: "object", properties: { a: { anyOf: choices } } };
    assert.deepEqual(assertSample(schema, { optional: false, told: new Map([["a", "zzz"]]) }), { a: 0 });
  });

  test("never runs a caller's pattern", () => {
    const string = { type: "string", pattern: "^(a+)+$", default: `${"a".repeat(60)}!` };
    makeSample({ allOf: [string, { pattern: "^(?:a|a)*$", minLength: 40 }] }, plain);
  });

  test("fails for a schema that no value satisfies", () => {
    for (const schema of [
      { allOf: [{ type: "string" }, { type: "null" }] },
      { type: "array", items: false, minItems: 1 },
      { enum: [] },
    ]) {
      assert.throws(() => makeSample(schema, plain), { code: "adapter_bad_request" });
    }
  });

  test("is made quickly or fails for a small schema that expands exponentially", () => {
    const parts = Array.from({ length: 40 }, (_, index) => ({ $ref: `#/$defs/${index + 1}` }));
    const doubling = (keyword: string) =>
      Object.fromEntries(parts.map((part, index) => [index, { [keyword]: [part, part] }]));
    const end = { 40: { type: "string" } };
    assert.equal(makeSample({ $ref: "#/$defs/0", $defs: { ...doubling("oneOf"), ...end } }, plain), "text");
    assert.throws(() => makeSample({ $ref: "#/$defs/0", $defs: { ...doubling("allOf"), ...end } }, plain), {
      code: "adapter_bad_request",
    });
  });

  test("is made of a malformed schema as far as it can be read", () => {
    assert.equal(makeSample({ type: "string", minLength: "x" }, plain), "text");
    assert.equal(makeSample({ type: "string", pattern: "(" }, plain), "text");
    assert.equal(makeSample({ $ref: "elsewhere.json" }, plain), "text");
    assert.equal(makeSample({ anyOf: {} }, plain), "text");
    assert.deepEqual(makeSample({ properties: 3, required: 4 }, plain), {});
  });
});

test("the sample of a pattern matches it", () => {
  const patterns = [
    String.raw`^[A-Z]{2}-\d{3,}(?:x|y)+$`,
    String.raw`^\+?[1-9]\d{1,14}$`,
    "^#[0-9a-fA-F]{6}$",
    String.raw`^[^a-y\s]+@\w+\.[a-z]{2,}$`,
    String.raw`^(?<year>\d{4})\/(0[1-9]|1[0-2])$`,
    String.raw`^\S+\.(png|jpe?g)$`,
    "^[a-z0-9]+(?:-[a-z0-9]+)*$",
    "[äöü]",
    String.raw`^[\p{L}]+$`,
    String.raw`\u0041\x42\n[\]\-]`,
    String.raw`^a\r\n[\r]$`,
    "^$",
  ];
  for (const pattern of patterns) {
    for (const more of [0, 1, 5]) {
      for (const nth of [0, 1, 9]) assert.match(readPattern(pattern)?.(nth, more) ?? "none", new RegExp(pattern, "u"));
    }
  }
  for (const pattern of ["(?=a)b", String.raw`(a)\1`, "(a", "a)", "[a", "*", String.raw`\p{L}`]) {
    assert.equal(readPattern(pattern)?.(0, 0), undefined);
  }
});

const names = fc.constantFrom("a", "b", "c", "d");

/** Schemas that some value satisfies, made of common keywords. */
const { schema: anySchema } = fc.letrec<{ schema: Schema; object: Schema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    scalars(),
    tie("object"),
    fc
      .record({ items: tie("schema"), minItems: fc.nat(3), more: fc.nat(3) })
      .map(({ items, minItems, more }) => ({ type: "array", items, minItems, maxItems: minItems + more })),
    fc
      .array(tie("schema"), { minLength: 1, maxLength: 3 })
      .map((prefixItems) => ({ type: "array", prefixItems, items: false })),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc.array(tie("object"), { minLength: 1, maxLength: 3 }).map((choices) => ({
      oneOf: choices.map((choice, index) => ({
        allOf: [choice, { type: "object", properties: { kind: { const: index } }, required: ["kind"] }],
      })),
    })),
    fc.constant({ anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] }),
    fc.constant({ $ref: "#/$defs/node" }),
  ),
  object: fc
    .record({ properties: fc.dictionary(names, tie("schema"), { maxKeys: 4 }), required: fc.uniqueArray(names) })
    .map(({ properties, required }) => ({
      type: "object",
      properties,
      required: required.filter((name) => Object.hasOwn(properties, name)),
    })),
}));

const schemas = fc.record({ part: anySchema, leaf: scalars() }).map(({ part, leaf }): Schema => {
  const next = { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] };
  const properties = { a: leaf, next };
  const node = { type: "object", properties, required: ["a", "next"], additionalProperties: false };
  return Object.assign({ $defs: { node } }, part);
});

function scalars(): fc.Arbitrary<Schema> {
  const bound = fc.integer({ min: -1_000, max: 1_000 });
  return fc.oneof(
    fc
      .record({ minLength: fc.nat(12), more: fc.nat(12) })
      .map(({ minLength, more }) => ({ type: "string", minLength, maxLength: minLength + more })),
    fc.constantFrom("date-time", "uuid", "email", "uri", "ipv4").map((format) => ({ type: "string", format })),
    fc.constantFrom("^[a-f]{3}$", String.raw`^\d+$`).map((pattern) => ({ type: "string", pattern })),
    fc
      .record({ minimum: bound, more: fc.nat(9) })
      .map(({ minimum, more }) => ({ type: "integer", minimum, maximum: minimum + more })),
    fc
      .record({ exclusiveMinimum: bound, more: fc.double({ min: 0.001, max: 9, noNaN: true }) })
      .map(({ exclusiveMinimum, more }) => ({
        type: "number",
        exclusiveMinimum,
        exclusiveMaximum: exclusiveMinimum + more,
      })),
    fc
      .record({ multipleOf: fc.constantFrom(1, 2, 7, 0.5, 0.25), minimum: bound })
      .map(({ multipleOf, minimum }) => ({ type: "number", multipleOf, minimum })),
    fc.array(fc.constantFrom("x", 1, null, true, 2.5), { minLength: 1 }).map((values) => ({ enum: values })),
    fc.jsonValue({ maxDepth: 2 }).map((value) => ({ const: value })),
    fc
      .uniqueArray(fc.constantFrom("string", "integer", "boolean", "null", "object", "array"), { minLength: 1 })
      .map((type) => ({ type })),
    fc.jsonValue({ maxDepth: 1 }).map((value) => ({ type: ["string", "number"], default: value })),
    fc
      .record({ minItems: fc.nat(6), type: fc.constantFrom("string", "integer") })
      .map(({ minItems, type }) => ({ type: "array", items: { type }, minItems, uniqueItems: true })),
    fc.constant({}),
  );
}

test("many strings with a long pattern are made in little time", () => {
  const since = worked();
  const items = { type: "string", pattern: String.raw`\d+`.repeat(300), minLength: 900 };
  const sample = makeSample({ type: "array", items, minItems: 500 }, plain);
  assert.deepEqual(sample, Array(500).fill("0".repeat(900)));
  assert.throws(() => makeSample({ type: "array", items, minItems: 500, uniqueItems: true }, plain), {
    code: "adapter_bad_request",
  });
  assert.ok(worked() - since < 5_000);
});

test("many long patterns are read in little time", () => {
  const since = worked();
  const prefixItems = Array.from({ length: 1_000 }, (_, index) => ({
    type: "string",
    pattern: index + String.raw`\w`.repeat(490),
  }));
  const sample = makeSample({ prefixItems }, plain);
  assert.deepEqual(
    sample,
    Array.from({ length: 1_000 }, (_, index) => index + "a".repeat(490)),
  );
  assert.ok(worked() - since < 2_000);
});

test("many values of a long list of choices or values are made in little time", () => {
  const since = worked();
  const anyOf = Array(200_000).fill(true);
  const values = Array(200_000).fill("text");
  assert.deepEqual(
    makeSample({ type: "array", items: { enum: values }, minItems: 3_000 }, plain),
    Array(3_000).fill("text"),
  );
  assert.deepEqual(makeSample({ type: "array", items: { anyOf }, minItems: 3_000 }, plain), Array(3_000).fill("text"));
  assert.ok(worked() - since < 1_000);
});

test("many values of a part with very many keywords are refused in little time", () => {
  const since = worked();
  const items = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`x${index}`, 1]));
  assert.throws(() => makeSample({ type: "array", items, minItems: 200 }, plain), { code: "adapter_bad_request" });
  assert.ok(worked() - since < 2_000);
});

test("a reference of many characters is refused", () => {
  for (const reference of ["x".repeat(1_000), "/x".repeat(500), "/%20".repeat(250)]) {
    const items = { $ref: `#${reference}` };
    assert.throws(() => makeSample({ type: "array", items, minItems: 1 }, plain), { code: "adapter_bad_request" });
  }
});

test("two long lists of values are intersected in linear time", () => {
  const values = (from: number) => Array.from({ length: 50_000 }, (_, index) => from + index);
  const types = (prefix: string) => Array.from({ length: 50_000 }, (_, index) => `${prefix}${index}`);
  const since = worked();
  assert.equal(makeSample({ allOf: [{ enum: values(0) }, { enum: values(49_999) }] }, plain), 49_999);
  assert.equal(
    typeof makeSample({ allOf: [{ type: [...types("a"), "string"] }, { type: [...types("b"), "string"] }] }, plain),
    "string",
  );
  assert.ok(worked() - since < 5_000);
});
