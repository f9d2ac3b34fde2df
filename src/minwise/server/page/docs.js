// Docs: openapi.json in, a page to read out.

import { button, complain, find, make } from "./elements.js";
import { kind, limits, messageName, sample } from "./schema.js";
import { ask } from "./service.js";

const METHODS = ["get", "post", "put", "patch", "delete"];

// A sentence with what stands between backticks as code.
const worded = (text) => (text ?? "").split("`").map((part, place) => (place % 2 ? make("code", {}, part) : part));

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

const row = (name, cells) => make("tr", {}, make("th", { scope: "row" }, ...name), ...cells.map((cell) => make("td", {}, ...cell)));

const spare = (required) => (required ? [] : [" ", make("span", { class: "spare" }, "optional")]);

// A field or a parameter: what may stand there, within which bounds, and what it is for.
const field = (name, schema, required, description) =>
  row([make("code", {}, name), ...spare(required)], [[...kind(schema), ...limits(schema)], worded(description ?? schema.description)]);

const fields = (schema, words) =>
  table(
    ["field", "value", "meaning"],
    Object.entries(schema.properties ?? {}).map(([name, one]) => field(name, one, schema.required?.includes(name))),
    words,
  );

const part = (heading, ...children) => [make("h4", {}, heading), ...children];

const parameters = (request) =>
  request.parameters?.length
    ? part(
        "Parameters",
        table(
          ["parameter", "value", "meaning"],
          request.parameters.map((one) => field(one.name, one.schema, one.required, one.description)),
          `Parameters of ${request.method.toUpperCase()} ${request.path}`,
        ),
      )
    : [];

const bodySchema = (content) => content?.["application/json"]?.schema ?? null;

// A message by a link, with its fields if it has any to show here.
const message = (schema, schemas, words) => {
  const name = messageName(schema);
  const line = make("p", {}, ...kind(schema));
  return name !== null && schemas[name]?.properties ? [line, fields(schemas[name], words)] : [line];
};

const body = (request, schemas) => {
  const schema = bodySchema(request.requestBody?.content);
  return schema === null ? [] : part("What is sent", ...message(schema, schemas, `Fields of what is sent with ${request.path}`));
};

const answer = (request, schemas) => {
  const found = request.responses["200"];
  const schema = bodySchema(found.content);
  const said = make("p", {}, ...worded(found.description));
  const media = Object.keys(found.content ?? {}).join(", ");
  if (schema === null) return part("What is answered", said, make("p", { class: "quiet small" }, media));
  return part("What is answered", said, ...message(schema, schemas, `Fields of the answer to ${request.path}`));
};

// The service lists the codes of a status as "- `code`: what it means".
const errorRows = ([status, { description }]) => {
  const codes = [...description.matchAll(/^- `(\w+)`: (.*)$/gm)];
  return codes.length
    ? codes.map(([, name, meaning]) => row([status], [[make("code", {}, name)], worded(meaning)]))
    : [row([status], [[], worded(description)])];
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

// A command that can be pasted into a shell as it is.
const command = (request, schemas) => {
  const { method, requestBody, security } = request;
  const path = request.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(sample({ type: "string" }, schemas, name)));
  const parts = [`curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}${location.origin}${path}`];
  if (security?.length) parts.push('-H "Authorization: Bearer $TOKEN"');
  const schema = bodySchema(requestBody?.content);
  if (schema !== null) parts.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(sample(schema, schemas)))}`);
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
  return needed.length ? make("p", { class: "quiet small" }, `Needs a token with the right to ${needed.join(" and ")}.`) : null;
};

const article = (request, schemas) =>
  make(
    "article",
    { class: "request", id: anchor(request), "aria-labelledby": `${anchor(request)}-name` },
    make("h3", { id: `${anchor(request)}-name` }, ...title(request)),
    make("p", {}, ...worded(request.summary), ...(request.description ? [" ", ...worded(request.description)] : [])),
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
    description ? make("p", { class: "lead" }, ...worded(description)) : null,
    ...found.map((request) => article(request, schemas)),
  );

const entry = (request) =>
  make("a", { href: `#${anchor(request)}` }, ...title(request), make("span", { class: "quiet small" }, request.summary));

const tagOf = (request) => request.tags?.[0] ?? "other";

const show = (api) => {
  const all = requests(api);
  const schemas = api.components?.schemas ?? {};
  const tags = new Map((api.tags ?? []).map(({ name, description }) => [name, description]));
  for (const request of all) if (!tags.has(tagOf(request))) tags.set(tagOf(request), "");
  const groups = [...tags].map(([name, description]) => [name, description, all.filter((one) => tagOf(one) === name)]);
  find("about").replaceChildren(...worded(api.info.description));
  find("version").textContent = `Version ${api.info.version}, also for programs:`;
  find("contents").replaceChildren(
    ...groups.flatMap(([, , found]) => found.map(entry)),
  );
  find("contents").hidden = false;
  find("requests").replaceChildren(...groups.filter(([, , found]) => found.length).map((one) => group(...one, schemas)));
  find("shapes").replaceChildren(
    ...Object.entries(schemas).map(([name, schema]) =>
      make(
        "article",
        { class: "request", id: `message-${name}`, "aria-labelledby": `message-${name}-name` },
        make("h3", { id: `message-${name}-name` }, name),
        make("p", {}, ...worded(schema.description)),
        schema.properties ? fields(schema, `Fields of ${name}`) : null,
      ),
    ),
  );
  find("messages").hidden = false;
};

try {
  show(await ask("GET", "/openapi.json"));
  // What the address points at is there only now.
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
} catch (error) {
  complain(find("trouble"), error);
}
