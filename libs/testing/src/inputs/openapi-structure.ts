/** JSON Schema of the parts of OpenAPI 3.1 that the gateway's document uses, and of extensions. It allows no others. */

const strictObject = (required: readonly string[], properties: object) => ({
  type: 'object',
  required,
  properties,
  additionalProperties: false,
  patternProperties: { '^x-': {} },
});
const mapSchema = (additionalProperties: object) => ({ type: 'object', additionalProperties });
const REFERENCE = strictObject(['$ref'], { $ref: { type: 'string', pattern: '^#/' } });
const HEADER = strictObject(['schema'], { description: { type: 'string' }, schema: { type: 'object' } });
const MEDIA = mapSchema(strictObject(['schema'], { schema: { type: 'object' }, example: {} }));
const RESPONSE = strictObject(['description'], {
  description: { type: 'string', minLength: 1 },
  headers: mapSchema({ anyOf: [HEADER, REFERENCE] }),
  content: MEDIA,
});
const OPERATION = strictObject(['operationId', 'responses', 'summary', 'tags', 'security'], {
  operationId: { type: 'string' },
  summary: { type: 'string', minLength: 1 },
  description: { type: 'string' },
  tags: { type: 'array', items: { type: 'string' }, minItems: 1 },
  security: { type: 'array', items: mapSchema({ type: 'array', items: { type: 'string' } }) },
  parameters: {
    type: 'array',
    items: strictObject(['name', 'in', 'schema'], {
      name: { type: 'string' },
      in: { enum: ['path', 'query', 'header', 'cookie'] },
      required: { type: 'boolean' },
      description: { type: 'string' },
      schema: { type: 'object' },
      example: {},
    }),
  },
  requestBody: strictObject(['content'], { required: { type: 'boolean' }, content: MEDIA }),
  responses: {
    type: 'object',
    minProperties: 1,
    patternProperties: { '^[1-5]\\d\\d$': { anyOf: [RESPONSE, REFERENCE] } },
    additionalProperties: false,
  },
});
export const OPENAPI_STRUCTURE = strictObject(['openapi', 'info', 'paths'], {
  openapi: { type: 'string', pattern: '^3\\.1\\.\\d+$' },
  info: strictObject(['title', 'version'], {
    title: { type: 'string' },
    version: { type: 'string' },
    description: { type: 'string' },
  }),
  servers: { type: 'array', items: strictObject(['url'], { url: { type: 'string', pattern: '^https?://' } }) },
  tags: {
    type: 'array',
    items: strictObject(['name'], { name: { type: 'string' }, description: { type: 'string' } }),
  },
  paths: {
    type: 'object',
    patternProperties: {
      '^/': strictObject(
        [],
        Object.fromEntries(['get', 'put', 'post', 'patch', 'delete'].map((method) => [method, OPERATION])),
      ),
    },
    additionalProperties: false,
  },
  components: strictObject([], {
    schemas: { type: 'object', propertyNames: { pattern: '^[\\w.-]+$' } },
    responses: mapSchema(RESPONSE),
    headers: mapSchema(HEADER),
    securitySchemes: mapSchema({
      oneOf: [
        strictObject(['type', 'scheme'], { type: { const: 'http' }, scheme: {}, description: {} }),
        strictObject(['type', 'in', 'name'], { type: { const: 'apiKey' }, in: {}, name: {}, description: {} }),
      ],
    }),
  }),
});
