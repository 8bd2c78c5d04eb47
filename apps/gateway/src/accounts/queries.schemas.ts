import { COUNT_UNITS } from '#projections';
import { nameSchema } from '../openapi/operation.ts';
import { array, BOOLEAN, COUNT, instant, nullable, object, text, usd } from '../openapi/schemas.ts';

const COUNT_UNIT = nullable({ type: 'string', enum: COUNT_UNITS });

export const QueryRecord = nameSchema(
  'QueryRecord',
  object({
    timestamp: instant('When the request was made'),
    model: text('The model that was used'),
    input_count: { ...COUNT, description: 'The amount of input in `input_unit`; 0 if the unit is null' },
    input_unit: {
      ...COUNT_UNIT,
      description:
        'Depends only on the type of the query. Tokens for chats, completions, responses, messages, embeddings and ' +
        'images (0 if the provider bills by the image); seconds of transcribed audio; characters of spoken text; null ' +
        'for videos and lookups',
    },
    output_count: { ...COUNT, description: 'The amount of output in `output_unit`; 0 if the unit is null' },
    output_unit: {
      ...COUNT_UNIT,
      description:
        'Depends only on the type of the query. Tokens for chats, completions, responses and messages; generated ' +
        'images; seconds of generated video; charged lookups; null for embeddings and audio',
    },
    price_in_usd: usd('Charged; negative for a charge that was reversed'),
    query_type: text('The type of the query, such as chat_completion'),
    query_source: text('The source of the query: ui or api'),
    api_key_id: { type: ['string', 'null'], description: 'The id of the key; null for the account itself' },
    isOnline: BOOLEAN,
    isFreeModel: { ...BOOLEAN, description: 'Whether the model was part of the free tier, whose requests are limited' },
    isEstimated: {
      ...BOOLEAN,
      description: 'Whether the usage is an estimate, because the provider reported none or an implausible one',
    },
    error_code: {
      type: ['string', 'null'],
      description: 'The error code of a query that failed; charge_reversed if its charge was reversed; else null',
    },
    request_id: text('The x-request-id of the response'),
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
      total: { ...COUNT, description: 'The number of records on all pages; if it is not exact, there may be more' },
      total_pages: COUNT,
      total_is_exact: { ...BOOLEAN, description: 'Whether there are no more records than `total`' },
      looked_back_to: {
        type: ['string', 'null'],
        description:
          'Records up to this time were not searched and may match; null if all were searched or enough were found',
      },
    }),
  }),
);
