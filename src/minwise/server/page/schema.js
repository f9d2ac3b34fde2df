// JSON schemas in words, and example values that conform to them.

import { make } from "./elements.js";
import { formatCount } from "./formatting.js";

const NAMES = {
  string: "string",
  integer: "integer",
  number: "number",
  boolean: "true or false",
  object: "object",
  null: "null",
};
const RULES = [
  ["minimum", (value) => `at least ${written(value)}`],
  ["exclusiveMinimum", (value) => `above ${written(value)}`],
  ["maximum", (value) => `at most ${written(value)}`],
  ["exclusiveMaximum", (value) => `below ${written(value)}`],
  ["minLength", (value) => (value === 1 ? "not empty" : `at least ${formatCount(value)} long`)],
  ["maxLength", (value) => `at most ${formatCount(value)} long`],
  ["minItems", (value) => (value === 1 ? "not empty" : `at least ${formatCount(value)} items`)],
  ["maxItems", (value) => `at most ${formatCount(value)} items`],
  ["default", (value) => (value === null ? null : `default ${JSON.stringify(value)}`)],
];

// Bounds beyond this are those of 64-bit integers and are not shown.
const LARGEST = 2 ** 53;

const written = (value) => (Number.isInteger(value) ? formatCount(value) : String(value));

const isTypeBound = (name, value) => name.endsWith("imum") && Math.abs(Number(value)) >= LARGEST;

export const messageName = (schema) => schema.$ref?.split("/").at(-1) ?? null;

const rules = (schema) =>
  RULES.filter(([name]) => schema[name] !== undefined && !isTypeBound(name, schema[name])).map(([name, describe]) =>
    describe(schema[name]),
  );

const choices = (schema) => schema.anyOf ?? schema.oneOf ?? null;

const code = (value) => make("code", {}, typeof value === "string" ? `"${value}"` : JSON.stringify(value));

const between = (parts, separator) => parts.flatMap((part, index) => (index ? [separator, ...part] : part));

// Type of a value as text and links to messages.
export const kind = (schema) => {
  const name = messageName(schema);
  if (name !== null) return [make("a", { href: `#message-${name}` }, name)];
  if (schema.const !== undefined) return [code(schema.const)];
  if (schema.enum) return between(schema.enum.map((value) => [code(value)]), " or ");
  if (choices(schema)) return between(choices(schema).map((one) => [...kind(one), ...limits(one)]), " or ");
  if (schema.allOf) return kind(schema.allOf[0]);
  if (schema.prefixItems) return ["[", ...between(schema.prefixItems.map(kind), ", "), "]"];
  if (schema.type === "array") return ["list of ", ...grouped(schema.items ?? {})];
  if (Array.isArray(schema.type)) return [schema.type.map((name) => NAMES[name]).join(" or ")];
  return [NAMES[schema.type] ?? "anything"];
};

const grouped = (schema) => (choices(schema) ? ["(", ...kind(schema), ")"] : kind(schema));

export const limits = (schema) => {
  const found = rules(schema).filter((one) => one !== null);
  return found.length ? [make("span", { class: "quiet" }, `, ${found.join(", ")}`)] : [];
};

// Example values that are more readable than generated ones.
const SAMPLES = {
  id: "ferry",
  ids: ["ferry"],
  text: "The night ferry will stop running at the end of October.",
  left: "The night ferry will stop running at the end of October.",
  right: "The night ferry stops running at the end of October.",
  metadata: { source: "wire" },
};

export const sample = (schema, schemas, name = "") => {
  if (SAMPLES[name] !== undefined) return SAMPLES[name];
  if (schema.examples?.length) return schema.examples[0];
  if (schema.example !== undefined) return schema.example;
  const message = messageName(schema);
  if (message !== null) return sample(schemas[message], schemas, name);
  if (choices(schema)) return sample(choices(schema)[0], schemas, name);
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined || schema.enum) return schema.const ?? schema.enum[0];
  if (schema.type === "object") {
    const worth = ([field]) => schema.required?.includes(field) || field === "metadata";
    const wanted = Object.entries(schema.properties ?? {}).filter(worth);
    return Object.fromEntries(wanted.map(([field, one]) => [field, sample(one, schemas, field)]));
  }
  if (schema.type === "array") return [sample(schema.items ?? {}, schemas)];
  return { boolean: true, integer: schema.minimum ?? 1, number: schema.minimum ?? 0.5 }[schema.type] ?? "text";
};
