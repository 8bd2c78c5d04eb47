import { type JsonSchema, nameSchema } from '../openapi/operation.ts';
import { array, COUNT, object, STRING, usd } from '../openapi/schemas.ts';

const TOKENS: JsonSchema = array(COUNT);

export const EmbeddingInputSchema: JsonSchema = {
  description: 'A text, an array of texts, or the same as tokens',
  oneOf: [STRING, array(STRING), TOKENS, array(TOKENS)],
};

export const EmbeddingList = nameSchema(
  'EmbeddingList',
  object({
    object: { const: 'list' },
    model: STRING,
    data: array(
      object({
        object: { const: 'embedding' },
        index: COUNT,
        embedding: {
          description: 'Numbers, or base64 of little-endian 32-bit floats',
          oneOf: [array({ type: 'number' }), STRING],
        },
      }),
    ),
    usage: object({ prompt_tokens: COUNT, total_tokens: COUNT, cost: usd('The charged amount') }),
  }),
);
