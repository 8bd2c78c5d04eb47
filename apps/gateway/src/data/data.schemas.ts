import type { Content } from '../openapi/operation.ts';
import { jsonContent, nameSchema } from '../openapi/operation.ts';
import { array, BOOLEAN, COUNT, nullable, object, STRING, text, usd } from '../openapi/schemas.ts';

export const LOOKUP_RESULT: Content = {
  ...jsonContent({ description: 'The response of the provider, unchanged' }),
  'image/tiff': { type: 'string', format: 'binary', description: 'For solar/rgb-image: a GeoTIFF' },
};

export const LOOKUP_PENDING: Content = jsonContent({
  description: 'The provider has no result yet. Nothing was charged; send the same request again later.',
});

const anyObject = (description: string) => ({ type: 'object', description });

const DataEndpointSchema = nameSchema(
  'DataEndpoint',
  object({
    path: text('The path of the lookup'),
    method: text('The HTTP method', { enum: ['GET', 'POST'] }),
    provider: text('The category of the lookup', { examples: ['maps'] }),
    action: text('The name of the lookup within its category', { examples: ['text-search/full'] }),
    name: STRING,
    description: STRING,
    price_usd: usd('The price of a call'),
    payment_methods: array(text('A way to pay for a call', { enum: ['balance', 'l402'] })),
    free_if_empty: { ...BOOLEAN, description: 'Whether a call without results is free' },
    limits: {
      ...anyObject('The maximum value, or list length, of each field that would multiply the cost'),
      additionalProperties: COUNT,
    },
    parameters: nullable(
      anyObject('The JSON schema of the body, or of the query of a GET; null if any fields are forwarded'),
    ),
    example: anyObject('An example of a body, or of query parameters, that has a result'),
  }),
);

export const DataEndpointList = nameSchema(
  'DataEndpointList',
  object({ status: { const: 'success' }, data: array(DataEndpointSchema), total: COUNT }),
);
