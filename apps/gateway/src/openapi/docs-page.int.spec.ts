import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { IsIn, IsOptional, Min } from 'class-validator';
import { type TestResponse, TestWorld } from '#testing';
import { html } from '../edge/pages/html.ts';
import { renderDocsPage } from './docs-page.ts';
import { createOpenApiDocument, type OpenApiDocument } from './document.ts';
import { jsonContent, nameSchema, type OperationOptions } from './operation.ts';
import { createRequestSchema, Field } from './request-schema.ts';
import { object, text } from './schemas.ts';

const NASTY = `<script>alert("1 & 'x'")</script>`;

const notes: OperationOptions = {
  id: 'doIt',
  tag: 'Service',
  summary: NASTY,
  auth: 'public',
  params: { id: { description: NASTY, example: `it's` } },
  response: jsonContent(nameSchema('Thing', object({ [NASTY]: text(NASTY) }))),
};
const documentOf = (changes: Partial<OperationOptions>, paths = ['/things/:id']) =>
  createOpenApiDocument(
    [{ handler: 'X.y', method: 'get', paths, status: 200, options: { ...notes, ...changes } }],
    NASTY,
  );

describe('the page', () => {
  let world: TestWorld;
  let page: TestResponse;
  let document: OpenApiDocument;
  beforeAll(async () => {
    world = await TestWorld.open();
    page = await world.get('/docs');
    document = (await world.get('/openapi.json')).body;
  });
  afterAll(() => world.close());

  test('loads and runs nothing except its own style', () => {
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'; frame-/,
    );
    const style = page.text.match(/<style>(.*)<\/style>/s)?.[1] ?? '';
    expect(policy).toContain(createHash('sha256').update(style).digest('base64'));
    expect(page.text).not.toMatch(/<script|<link|<img|\sstyle=|\son\w+=|src=/);
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  });

  test('has a section for each operation and each schema, and every link within the page has a target', () => {
    const ids = [...page.text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    const first = operations.filter((operation) => operation['x-alias-of'] === undefined);
    for (const { operationId } of first) expect(ids).toContain(operationId);
    for (const name of Object.keys(document.components.schemas)) expect(ids).toContain(`shape-${name}`);
    for (const [, target] of page.text.matchAll(/href="#([^"]+)"/g)) expect(ids).toContain(target);
    for (const path of Object.keys(document.paths)) expect(page.text).toContain(`<code>${path}</code>`);
  });

  test('shows how to call an operation', () => {
    expect(page.text).toContain(`curl -X POST &#39;${world.api}/v1/chat/completions&#39;`);
    expect(page.text).toContain('authorization: Bearer sk-…');
  });

  test('closes every HTML element', () => {
    const open: string[] = [];
    for (const [, slash, name = ''] of page.text.matchAll(/<(\/?)([a-z][a-z0-9]*)/g)) {
      if (name === 'meta') continue;
      if (slash === '') open.push(name);
      else expect(open.pop()).toBe(name);
    }
    expect(open).toEqual([]);
  });

  test('escapes all text of the document', () => {
    const nasty = renderDocsPage(documentOf({}));
    expect(nasty).not.toContain('<script');
    expect(nasty).toContain('&lt;script&gt;alert(&quot;1 &amp; &#39;x&#39;&quot;)&lt;/script&gt;');
    expect(nasty).not.toContain('undefined');
  });
});

describe('html', () => {
  test('escapes values, except for HTML', () => {
    const bold = html`<b>${'<&>'}</b>`;
    expect(html`<p title="${`"'`}">${bold}${[bold, 1]}${undefined}</p>`.text).toBe(
      '<p title="&quot;&#39;"><b>&lt;&amp;&gt;</b><b>&lt;&amp;&gt;</b>1</p>',
    );
  });
});

describe('a document', () => {
  test('gives each further path of a route its own operation id', () => {
    const { paths } = documentOf({}, ['/v1/things/:id', '/things/:id', '/old/*']);
    expect(Object.entries(paths).map(([path, { get }]) => [path, get?.operationId, get?.['x-alias-of']])).toEqual([
      ['/v1/things/{id}', 'doIt', undefined],
      ['/things/{id}', 'doItAlias', 'doIt'],
      ['/old/{id}', 'doItAlias2', 'doIt'],
    ]);
  });

  test('cannot have two schemas with one name', () => {
    const one = nameSchema('Same', object({ a: text('a') }));
    const other = nameSchema('Same', object({ b: text('b') }));
    expect(() => documentOf({ response: jsonContent(object({ one, other })) })).toThrow('two schemas are called Same');
  });

  test('lists the accepted credentials, which are optional if the credit id may be sent in a field', () => {
    class Claim {
      @Field(text('The account'))
      credit_id?: unknown;
    }
    const security = (changes: Partial<OperationOptions>) => documentOf(changes).paths['/things/{id}']?.get?.security;
    expect(security({})).toEqual([]);
    expect(security({ auth: 'account' })).toEqual([{ 'x-credit-id': [] }]);
    expect(security({ auth: 'key', body: Claim })).toEqual([
      ...['bearer', 'api-key', 'x-api-key', 'x-credit-id'].map((name) => ({ [name]: [] })),
      {},
    ]);
  });
});

describe('the schema of a request', () => {
  class Thing {
    @Field({ description: 'how many' })
    @IsOptional()
    @Min(1)
    count?: number | null;

    @IsIn(['a', 'b'])
    kind!: string;
  }

  class Special extends Thing {
    @Field({ type: 'string' })
    unchecked?: unknown;
  }

  test('combines the rules and the descriptions of its fields, including those of base classes', () => {
    expect(createRequestSchema(Special)).toEqual({
      type: 'object',
      properties: {
        count: { minimum: 1, description: 'how many' },
        kind: { enum: ['a', 'b'] },
        unchecked: { type: 'string' },
      },
      required: ['kind'],
    });
  });
});
