import { nameSchema } from '../../openapi/operation.ts';
import { array, object, STRING, seconds, text, usd } from '../../openapi/schemas.ts';

export const ImageList = nameSchema(
  'ImageList',
  object({
    created: seconds('When they were made'),
    model: STRING,
    cost: usd('Charged'),
    data: array(
      object(
        {
          url: text('A signed address that needs no credential and lasts 24 hours'),
          b64_json: text('The image itself in base64, where that was asked for'),
          content_type: text('What it is, by its content', { examples: ['image/png'] }),
        },
        ['url', 'b64_json'],
      ),
    ),
  }),
);

export const ImageEvent = nameSchema(
  'ImageEvent',
  object({
    type: text('What has happened', { enum: ['image_generation.completed', 'image_edit.completed'] }),
    created_at: seconds('When it was made'),
    model: STRING,
    cost: usd('Charged for all images of the request'),
    output_format: text('What it is, by its content', { examples: ['png'] }),
    b64_json: text('The image itself in base64'),
    content_type: text('Its media type', { examples: ['image/png'] }),
  }),
);
