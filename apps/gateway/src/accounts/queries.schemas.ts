import { nameSchema } from '../openapi/operation.ts';
import { array, BOOLEAN, COUNT, instant, object, text, usd } from '../openapi/schemas.ts';

export const QueryRecord = nameSchema(
  'QueryRecord',
  object({
    timestamp: instant('When the request was made'),
    model: text('The model that was used'),
    input_count: { ...COUNT, description: 'Input tokens' },
    output_count: { ...COUNT, description: 'Output tokens' },
    price_in_usd: usd('Charged'),
    query_type: text('The kind of use, such as chat_completion'),
    query_source: text('Where it came from: ui or api'),
    api_key_id: { type: ['string', 'null'], description: 'The key that was used; null for the account itself' },
    isOnline: BOOLEAN,
    isFreeModel: BOOLEAN,
    isEstimated: { ...BOOLEAN, description: 'The provider reported no usage; it was counted instead' },
    error_code: { type: ['string', 'null'], description: 'Why it failed, if it did' },
    request_id: text('The x-request-id of the answer'),
  }),
);

export const HistorySchema = nameSchema(
  'History',
  object({
    status: { const: 'success' },
    data: array(QueryRecord),
    pagination: object({
      page: { type: 'integer', minimum: 1 },
      page_count: { type: 'integer', minimum: 1, maximum: 100, description: 'Records per page' },
      total: { ...COUNT, description: 'Records on all pages, as far as they were counted' },
      total_pages: COUNT,
      total_is_exact: { ...BOOLEAN, description: 'There are no more than that' },
      looked_back_to: {
        type: ['string', 'null'],
        description: 'Records of this time and before were not looked at, and some may match',
      },
    }),
  }),
);
