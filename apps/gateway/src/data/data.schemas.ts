import type { Content } from '../openapi/operation.ts';
import { jsonContent, nameSchema } from '../openapi/operation.ts';
import { array, BOOLEAN, COUNT, nullable, object, STRING, text, usd } from '../openapi/schemas.ts';

/** Of the vendor: any JSON, or a file. */
export const LOOKUP_RESULT: Content = {
  ...jsonContent({ description: 'What the vendor has answered, as it wrote it' }),
  'image/tiff': { type: 'string', format: 'binary', description: 'Of solar/rgb-image: a GeoTIFF' },
};

/** A vendor is still looking: ask again. */
export const LOOKUP_PENDING: Content = jsonContent({
  description: 'The vendor is still looking: nothing was charged; ask again',
});

const anyObject = (description: string) => ({ type: 'object', description });

const DataEndpointSchema = nameSchema(
  'DataEndpoint',
  object({
    path: text('Where it is called'),
    method: text('How', { enum: ['GET', 'POST'] }),
    provider: text('The class of vendors that it belongs to', { examples: ['maps'] }),
    action: text('What it does', { examples: ['text-search/full'] }),
    name: STRING,
    description: STRING,
    price_usd: usd('What a call is charged with'),
    payment_methods: array(text('How a call can be paid', { enum: ['balance', 'l402'] })),
    free_if_empty: { ...BOOLEAN, description: 'A call that finds nothing is not charged' },
    limits: {
      ...anyObject('The most that fields may be, or lists have, which would multiply the cost'),
      additionalProperties: COUNT,
    },
    parameters: nullable(
      anyObject('A JSON schema of the body, or of the query of a GET; null where any are passed on'),
    ),
    example: anyObject('A body, or the parameters of a query, that has an answer'),
  }),
);

export const DataEndpointList = nameSchema(
  'DataEndpointList',
  object({ status: { const: 'success' }, data: array(DataEndpointSchema), total: COUNT }),
);
