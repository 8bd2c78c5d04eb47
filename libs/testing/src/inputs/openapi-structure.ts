/** What an OpenAPI 3.1 document is, as far as ours goes: a JSON Schema that allows nothing else. */

const closed = (required: readonly string[], properties: object) => ({
  type: 'object',
  required,
  properties,
  additionalProperties: false,
  patternProperties: { '^x-': {} },
});
const mapOf = (additionalProperties: object) => ({ type: 'object', additionalProperties });
const REFERENCE = closed(['$ref'], { $ref: { type: 'string', pattern: '^#/' } });
const HEADER = closed(['schema'], { description: { type: 'string' }, schema: { type: 'object' } });
const MEDIA = mapOf(closed(['schema'], { schema: { type: 'object' }, example: {} }));
const RESPONSE = closed(['description'], {
  description: { type: 'string', minLength: 1 },
  headers: mapOf({ anyOf: [HEADER, REFERENCE] }),
  content: MEDIA,
});
const OPERATION = closed(['operationId', 'responses', 'summary', 'tags', 'security'], {
  operationId: { type: 'string' },
  summary: { type: 'string', minLength: 1 },
  description: { type: 'string' },
  tags: { type: 'array', items: { type: 'string' }, minItems: 1 },
  security: { type: 'array', items: mapOf({ type: 'array', items: { type: 'string' } }) },
  parameters: {
    type: 'array',
    items: closed(['name', 'in', 'schema'], {
      name: { type: 'string' },
      in: { enum: ['path', 'query', 'header', 'cookie'] },
      required: { type: 'boolean' },
      description: { type: 'string' },
      schema: { type: 'object' },
      example: {},
    }),
  },
  requestBody: closed(['content'], { required: { type: 'boolean' }, content: MEDIA }),
  responses: {
    type: 'object',
    minProperties: 1,
    patternProperties: { '^[1-5]\\d\\d$': { anyOf: [RESPONSE, REFERENCE] } },
    additionalProperties: false,
  },
});
export const OPENAPI_STRUCTURE = closed(['openapi', 'info', 'paths'], {
  openapi: { type: 'string', pattern: '^3\\.1\\.\\d+$' },
  info: closed(['title', 'version'], {
    title: { type: 'string' },
    version: { type: 'string' },
    description: { type: 'string' },
  }),
  servers: { type: 'array', items: closed(['url'], { url: { type: 'string', pattern: '^https?://' } }) },
  tags: {
    type: 'array',
    items: closed(['name'], { name: { type: 'string' }, description: { type: 'string' } }),
  },
  paths: {
    type: 'object',
    patternProperties: {
      '^/': closed(
        [],
        Object.fromEntries(['get', 'put', 'post', 'patch', 'delete'].map((method) => [method, OPERATION])),
      ),
    },
    additionalProperties: false,
  },
  components: closed([], {
    schemas: { type: 'object', propertyNames: { pattern: '^[\\w.-]+$' } },
    responses: mapOf(RESPONSE),
    headers: mapOf(HEADER),
    securitySchemes: mapOf({
      oneOf: [
        closed(['type', 'scheme'], { type: { const: 'http' }, scheme: {}, description: {} }),
        closed(['type', 'in', 'name'], { type: { const: 'apiKey' }, in: {}, name: {}, description: {} }),
      ],
    }),
  }),
});
