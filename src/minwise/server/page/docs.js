// API documentation, rendered from openapi.json.

import { callApi } from "./api.js";
import { button, byId, make, showError } from "./elements.js";
import { kind, limits, messageName, sample } from "./schema.js";

const METHODS = ["get", "post", "put", "patch", "delete"];

// Text with backquoted parts as code.
const withCode = (text) => (text ?? "").split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));

const requests = ({ paths }) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => ({ path, method, ...methods[method] })),
  );

const anchor = ({ method, path }) => `${method}${path.replace(/[^a-z0-9]+/gi, "-").replace(/-$/, "")}`;

const title = ({ method, path }) => [
  make("span", { class: `method ${method}` }, method.toUpperCase()),
  " ",
  make("code", {}, path),
];

const table = (heads, rows, words) =>
  make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": words },
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows),
    ),
  );

const row = (name, cells) =>
  make("tr", {}, make("th", { scope: "row" }, ...name), ...cells.map((cell) => make("td", {}, ...cell)));

const optionalMark = (required) => (required ? [] : [" ", make("span", { class: "spare" }, "optional")]);

// Row of a field or parameter: name, type with limits, and description.
const field = (name, schema, required, description) =>
  row(
    [make("code", {}, name), ...optionalMark(required)],
    [[...kind(schema), ...limits(schema)], withCode(description ?? schema.description)],
  );

const fields = (schema, words) =>
  table(
    ["field", "type", "description"],
    Object.entries(schema.properties ?? {}).map(([name, one]) => field(name, one, schema.required?.includes(name))),
    words,
  );

const part = (heading, ...children) => [make("h4", {}, heading), ...children];

const parameters = (request) =>
  request.parameters?.length
    ? part(
        "Parameters",
        table(
          ["parameter", "type", "description"],
          request.parameters.map((one) => field(one.name, one.schema, one.required, one.description)),
          `Parameters of ${request.method.toUpperCase()} ${request.path}`,
        ),
      )
    : [];

const bodySchema = (content) => content?.["application/json"]?.schema ?? null;

// Link to a message, and its fields if it has any.
const message = (schema, schemas, words) => {
  const name = messageName(schema);
  const line = make("p", {}, ...kind(schema));
  return name !== null && schemas[name]?.properties ? [line, fields(schemas[name], words)] : [line];
};

const body = (request, schemas) => {
  const schema = bodySchema(request.requestBody?.content);
  if (schema === null) return [];
  return part("Request body", ...message(schema, schemas, `Fields of the request body of ${request.path}`));
};

const answer = (request, schemas) => {
  const found = request.responses["200"];
  const schema = bodySchema(found.content);
  const description = make("p", {}, ...withCode(found.description));
  const media = Object.keys(found.content ?? {}).join(", ");
  if (schema === null) return part("Response", description, make("p", { class: "quiet small" }, media));
  return part("Response", description, ...message(schema, schemas, `Fields of the response of ${request.path}`));
};

// The description of a status lists its codes as "- `code`: meaning".
const errorRows = ([status, { description }]) => {
  const codes = [...description.matchAll(/^- `(\w+)`: (.*)$/gm)];
  return codes.length
    ? codes.map(([, name, meaning]) => row([status], [[make("code", {}, name)], withCode(meaning)]))
    : [row([status], [[], withCode(description)])];
};

const errors = (request) => {
  const found = Object.entries(request.responses).filter(([status]) => !status.startsWith("2"));
  if (!found.length) return [];
  const rows = found.flatMap(errorRows);
  const words = `Errors of ${request.method.toUpperCase()} ${request.path}`;
  const all = table(["status", "code", "meaning"], rows, words);
  return [make("details", { class: "folded" }, make("summary", {}, `${rows.length} errors`), all)];
};

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// Query string with a value for each required parameter.
const requiredQuery = ({ parameters: given = [] }, schemas) => {
  const needed = given.filter((one) => one.in === "query" && one.required);
  const pairs = needed.map(({ name, schema }) => [name, String(sample(schema, schemas, name))]);
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
};

// Shell command that runs as it is.
const command = (request, schemas) => {
  const { method, requestBody, security } = request;
  const value = (_, name) => encodeURIComponent(sample({ type: "string" }, schemas, name));
  const path = request.path.replaceAll(/\{(\w+)\}/g, value);
  const url = `${location.origin}${path}${requiredQuery(request, schemas)}`;
  const parts = [`curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}${url.includes("?") ? quoted(url) : url}`];
  if (security?.length) parts.push('-H "Authorization: Bearer $TOKEN"');
  const schema = bodySchema(requestBody?.content);
  if (schema !== null) {
    parts.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(sample(schema, schemas)))}`);
  }
  return parts.join(" \\\n  ");
};

const example = (request, schemas) => {
  const text = command(request, schemas);
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(shown);
      copy.textContent = "Selected";
    }
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  }, { "aria-label": `Copy the example of ${request.method.toUpperCase()} ${request.path}` });
  const shown = make("pre", { class: "curl", dir: "ltr" }, text);
  return make("div", { class: "example" }, shown, copy);
};

const rights = ({ security }) => {
  const needed = (security ?? []).flatMap((one) => Object.values(one).flat());
  if (!needed.length) return null;
  return make("p", { class: "quiet small" }, `Requires a token with the right to ${needed.join(" and ")}.`);
};

const article = (request, schemas) =>
  make(
    "article",
    { class: "request", id: anchor(request), "aria-labelledby": `${anchor(request)}-name` },
    make("h3", { id: `${anchor(request)}-name` }, ...title(request)),
    make("p", {}, ...withCode([request.summary, request.description].filter(Boolean).join(" "))),
    rights(request),
    example(request, schemas),
    ...parameters(request),
    ...body(request, schemas),
    ...answer(request, schemas),
    ...errors(request),
  );

const group = (name, description, found, schemas) =>
  make(
    "section",
    { "aria-labelledby": `group-${name}` },
    make("h2", { id: `group-${name}` }, name[0].toUpperCase() + name.slice(1)),
    description ? make("p", { class: "lead" }, ...withCode(description)) : null,
    ...found.map((request) => article(request, schemas)),
  );

const entry = (request) =>
  make(
    "a",
    { href: `#${anchor(request)}` },
    ...title(request),
    make("span", { class: "quiet small" }, request.summary),
  );

const tagOf = (request) => request.tags?.[0] ?? "other";

const show = (api) => {
  const all = requests(api);
  const schemas = api.components?.schemas ?? {};
  const tags = new Map((api.tags ?? []).map(({ name, description }) => [name, description]));
  for (const request of all) if (!tags.has(tagOf(request))) tags.set(tagOf(request), "");
  const groups = [...tags].map(([name, description]) => [name, description, all.filter((one) => tagOf(one) === name)]);
  byId("about").replaceChildren(...withCode(api.info.description));
  byId("version").textContent = `Version ${api.info.version}, also as`;
  byId("contents").replaceChildren(
    ...groups.flatMap(([, , found]) => found.map(entry)),
  );
  byId("contents").hidden = false;
  const nonEmpty = groups.filter(([, , found]) => found.length);
  byId("requests").replaceChildren(...nonEmpty.map((parts) => group(...parts, schemas)));
  byId("shapes").replaceChildren(
    ...Object.entries(schemas).map(([name, schema]) =>
      make(
        "article",
        { class: "request", id: `message-${name}`, "aria-labelledby": `message-${name}-name` },
        make("h3", { id: `message-${name}-name` }, name),
        make("p", {}, ...withCode(schema.description)),
        schema.properties ? fields(schema, `Fields of ${name}`) : null,
      ),
    ),
  );
  byId("messages").hidden = false;
};

try {
  show(await callApi("GET", "/openapi.json"));
  // The target of the URL fragment exists only now.
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
} catch (error) {
  showError(byId("trouble"), error);
}
