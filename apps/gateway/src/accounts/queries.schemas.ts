import { named } from '../openapi/operation.ts';
import { array, BOOLEAN, COUNT, instant, object, text, usd } from '../openapi/schemas.ts';

export const QueryRecord = named(
  'QueryRecord',
  object({
    timestamp: instant('When it was asked'),
    model: text('The model that was asked'),
    input_count: { ...COUNT, description: 'Input tokens' },
    output_count: { ...COUNT, description: 'Output tokens' },
    price_in_usd: usd('What was charged'),
    query_type: text('The kind of use, such as chat_completion'),
    query_source: text('Where it came from: ui or api'),
    api_key_id: { type: ['string', 'null'], description: 'The key that was used; null for the account itself' },
    isOnline: BOOLEAN,
    isFreeModel: BOOLEAN,
    isEstimated: { ...BOOLEAN, description: 'The upstream told no usage, and it was counted instead' },
    error_code: { type: ['string', 'null'], description: 'Why it failed, if it did' },
    request_id: text('The x-request-id of its answer'),
  }),
);

export const History = named(
  'History',
  object({
    status: { const: 'success' },
    data: array(QueryRecord),
    pagination: object({
      page: { type: 'integer', minimum: 1 },
      page_count: { type: 'integer', minimum: 1, maximum: 100, description: 'The size of a page' },
      total: { ...COUNT, description: 'Records on all pages' },
      total_pages: COUNT,
    }),
  }),
);
