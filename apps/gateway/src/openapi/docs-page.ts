/** Renders the OpenAPI document as one page, without scripts or external resources. */
import { createHash } from 'node:crypto';
import { Html, html } from '../edge/pages/html.ts';
import type { DocumentedResponse } from './components.ts';
import type { OpenApiDocument, Parameter, PathOperation } from './document.ts';
import type { JsonSchema } from './operation.ts';

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#ddd, #444); --soft: light-dark(#f5f5f3, #222); --accent: light-dark(#0550ae, #79b8ff); }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem 1.5rem 4rem; }
code, pre { font: 0.875em/1.5 ui-monospace, monospace; }
pre { background: var(--soft); border-radius: 6px; overflow-x: auto; padding: 0.75rem 1rem; }
a { color: var(--accent); }
nav ul, .fields { list-style: none; padding-left: 0; }
.fields .fields { border-left: 2px solid var(--line); margin-left: 0.25rem; padding-left: 1rem; }
.fields li { padding: 0.15rem 0; }
section { border-top: 1px solid var(--line); margin-top: 2rem; }
.method { border: 1px solid var(--accent); border-radius: 4px; color: var(--accent); font-weight: 600; padding: 0 0.4em; }
.type { color: var(--accent); }
.note { opacity: 0.75; }
`;

/** Nothing may be loaded or run. The only style is allowed by its hash. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

interface OperationEntry {
  readonly method: string;
  readonly path: string;
  readonly operation: PathOperation;
  /** The paths of the operation in addition to `path`. */
  readonly aliases: readonly string[];
}

export function renderDocsPage(document: OpenApiDocument): string {
  const entries = listOperationEntries(document);
  const tags = document.tags.map((tag) => ({
    ...tag,
    entries: entries.filter(({ operation }) => operation.tags.includes(tag.name)),
  }));
  const url = document.servers[0]?.url ?? '';
  const { title, version, description } = document.info;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} API</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<h1>${title} API ${version}</h1>
${description.split('\n\n').map((paragraph) => html`<p>${paragraph}</p>`)}
<p>Base URL: <code>${url}</code>. Machine-readable: <a href="/openapi.json">openapi.json</a>.</p>
<nav>${tags.map((tag) => html`<h3>${tag.name}</h3><ul>${tag.entries.map(renderLink)}</ul>`)}</nav>
<section id="credentials"><h2>Credentials</h2>${renderCredentials(document)}</section>
${tags.map((tag) => html`<section><h2>${tag.name}</h2><p>${tag.description}</p></section>${tag.entries.map((entry) => renderOperation(entry, document, url))}`)}
<section><h2>Schemas</h2></section>
${Object.entries(document.components.schemas).map(([name, schema]) => html`<section id="${toSchemaAnchor(name)}"><h3>${name}</h3>${renderSchema(schema)}</section>`)}
</body>
</html>
`;
  return page.text;
}

function listOperationEntries({ paths }: OpenApiDocument): OperationEntry[] {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const first = all.filter(({ operation }) => operation['x-alias-of'] === undefined);
  return first.map((entry) => {
    const aliasEntries = all.filter(({ operation }) => operation['x-alias-of'] === entry.operation.operationId);
    return { ...entry, aliases: aliasEntries.map(({ path }) => path) };
  });
}

function renderLink({ method, path, operation }: OperationEntry): Html {
  return html`<li><a href="#${operation.operationId}"><code>${method.toUpperCase()} ${path}</code></a> ${operation.summary}</li>`;
}

function renderCredentials({ components }: OpenApiDocument): Html {
  const items = Object.entries(components.securitySchemes).map(([name, { type, scheme = '', description }]) => {
    const example = type === 'http' ? `Authorization: ${capitalize(String(scheme))} …` : `${name}: …`;
    return html`<li><code>${example}</code> ${description}</li>`;
  });
  return html`<ul>${items}</ul>`;
}

function capitalize(value: string): string {
  return value.charAt(0).toUpperCase() + value.slice(1);
}

function renderOperation(
  { method, path, operation, aliases }: OperationEntry,
  document: OpenApiDocument,
  url: string,
): Html {
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const [content] = Object.values(requestBody?.content ?? {});
  return html`<section id="${operationId}">
<h3><span class="method">${method.toUpperCase()}</span> <code>${path}</code></h3>
<p><strong>${summary}.</strong> ${description}</p>
${aliases.map((alias) => html`<p class="note">Also at <code>${alias}</code></p>`)}
<p class="note">${renderCredential(operation)}</p>
${parameters.length > 0 ? html`<h4>Parameters</h4><ul class="fields">${parameters.map(renderParameter)}</ul>` : undefined}
${content ? html`<h4>Body${requestBody?.required ? '' : ', optional'}</h4>${renderSchema(resolveSchema(content.schema, document))}` : undefined}
<h4>Example</h4><pre>${formatCurlCommand(method, path, operation, url)}</pre>
<h4>Responses</h4><ul class="fields">${Object.entries(responses).map(([status, response]) => renderResponse(status, response, document))}</ul>
</section>
`;
}

function renderCredential({ security }: PathOperation): Html {
  const names = security.flatMap((requirement) => Object.keys(requirement));
  if (names.length === 0) return html`No credential is needed.`;
  if (isEmpty(security[0])) return html`No credential is needed. If one is sent, it must be valid.`;
  const inFields = security.some(isEmpty);
  return html`<a href="#credentials">Credential</a>: ${names.join(' or ')}${inFields ? ', or the field credit_id' : ''}.`;
}

function isEmpty(requirement: object = {}): boolean {
  return Object.keys(requirement).length === 0;
}

function renderParameter({ name, in: where, required, description, schema }: Parameter): Html {
  return renderField(name, { ...schema, ...(description ? { description } : {}) }, required, ` in the ${where}`);
}

function renderResponse(status: string, response: PathOperation['responses'][string], document: OpenApiDocument): Html {
  const { description, content = {} } = resolveResponse(response, document);
  const types = Object.entries(content).map(([type, { schema }]) => html` <code>${type}</code> ${renderType(schema)}`);
  return html`<li><strong>${status}</strong> ${description}:${types}</li>`;
}

function resolveResponse(
  response: PathOperation['responses'][string],
  { components }: OpenApiDocument,
): DocumentedResponse {
  if (!('$ref' in response)) return response;
  return components.responses[getRefName(response.$ref)] as DocumentedResponse;
}

/** Returns the schema that a reference points to. A schema that is no known reference is returned unchanged. */
function resolveSchema(schema: JsonSchema, { components }: OpenApiDocument): JsonSchema {
  return components.schemas[getRefName(String(schema.$ref))] ?? schema;
}

/** Renders the fields of an object, or the type of any other schema. */
function renderSchema(schema: JsonSchema): Html {
  const { description, properties, required = [], items } = schema;
  if (!properties) return items ? html`${renderType(schema)}` : html`<p>${renderType(schema)} ${description}</p>`;
  const fields = Object.entries(properties as Record<string, JsonSchema>);
  const list = fields.map(([name, property]) => renderField(name, property, (required as string[]).includes(name)));
  return html`${description === undefined ? undefined : html`<p>${description}</p>`}<ul class="fields">${list}</ul>`;
}

function renderField(name: string, schema: JsonSchema, required: boolean, where = ''): Html {
  const { description, items, additionalProperties } = schema;
  const [inner] = [schema, items, additionalProperties].filter(
    (candidate) => (candidate as JsonSchema | undefined)?.properties,
  );
  return html`<li><code>${name}</code> <span class="type">${renderType(schema)}</span><span class="note">${where}${required ? '' : ', optional'}${formatConstraints(schema)}</span> ${description}${inner ? renderSchema({ ...(inner as JsonSchema), description: undefined }) : undefined}</li>`;
}

function renderType(schema: JsonSchema): Html {
  const { $ref, type, enum: values, const: constant, items, format } = schema;
  if (typeof $ref === 'string') return html`<a href="#${toSchemaAnchor(getRefName($ref))}">${getRefName($ref)}</a>`;
  if (constant !== undefined) return html`<code>${JSON.stringify(constant)}</code>`;
  if (Array.isArray(values)) return html`${values.map((value) => JSON.stringify(value)).join(' or ')}`;
  if (items && type === 'array') return html`array of ${renderType(items as JsonSchema)}`;
  return html`${[type ?? 'anything'].flat().join(' or ')}${typeof format === 'string' ? ` (${format})` : undefined}`;
}

const CONSTRAINT_LABELS: Readonly<Record<string, string>> = {
  minimum: 'at least',
  exclusiveMinimum: 'above',
  maximum: 'at most',
  minLength: 'min length',
  maxLength: 'max length',
  minItems: 'min items',
  maxItems: 'max items',
  default: 'by default',
};

function formatConstraints(schema: JsonSchema): string {
  const bounds = Object.entries(CONSTRAINT_LABELS).filter(([keyword]) => schema[keyword] !== undefined);
  return bounds.map(([keyword, label]) => `, ${label} ${schema[keyword]}`).join('');
}

/** Returns a curl command that can be copied into a shell. */
export function formatCurlCommand(method: string, path: string, operation: PathOperation, url: string): string {
  const { parameters, security, requestBody } = operation;
  const query = parameters.filter(({ in: where, example }) => where === 'query' && example !== undefined);
  const search = query.map(({ name, example }) => `${name}=${encodeURIComponent(String(example))}`).join('&');
  const filledPath = parameters.reduce(
    (currentPath, { name, example }) => currentPath.replace(`{${name}}`, String(example)),
    path,
  );
  const [scheme] = Object.keys(security[0] ?? {});
  const credential = { bearer: 'authorization: Bearer sk-…', 'x-credit-id': 'x-credit-id: …' }[scheme ?? ''];
  return [
    `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} ${quoteForShell(`${url}${filledPath}${search && `?${search}`}`)}`,
    ...(credential ? [`-H ${quoteForShell(credential)}`] : []),
    ...Object.entries(requestBody?.content ?? {})
      .slice(0, 1)
      .flatMap(([type, { example }]) => (example === undefined ? [] : formatBodyArguments(type, example))),
  ].join(' \\\n  ');
}

function formatBodyArguments(type: string, example: unknown): readonly string[] {
  if (type !== 'multipart/form-data')
    return [`-H 'content-type: ${type}'`, `-d ${quoteForShell(JSON.stringify(example))}`];
  return Object.entries(example as object).map(([name, value]) => `-F ${quoteForShell(`${name}=${value}`)}`);
}

function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function toSchemaAnchor(name: string): string {
  return `shape-${name}`;
}

function getRefName(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}
