import type { JsonSchema } from './operation.ts';
import { text } from './schemas.ts';

export const OpenApiContent: JsonSchema = {
  type: 'object',
  description: 'An OpenAPI 3.1 document',
  properties: { openapi: { type: 'string', pattern: '^3\\.1\\.' } },
  required: ['openapi', 'info', 'paths', 'components'],
  additionalProperties: true,
};

export const HtmlPageContent = text('A page without scripts');
