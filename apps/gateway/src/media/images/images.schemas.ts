import { nameSchema } from '../../openapi/operation.ts';
import { array, object, STRING, seconds, text, usd } from '../../openapi/schemas.ts';

export const ImageList = nameSchema(
  'ImageList',
  object({
    created: seconds('When the images were generated'),
    model: STRING,
    cost: usd('The charged amount'),
    data: array(
      object(
        {
          url: text('A signed URL that needs no credential and expires after 24 hours'),
          b64_json: text('The image in base64; present if `url` is not'),
          content_type: text('The media type, detected from the content', { examples: ['image/png'] }),
        },
        ['url', 'b64_json'],
      ),
    ),
  }),
);

export const ImageEvent = nameSchema(
  'ImageEvent',
  object({
    type: text('The type of the event', { enum: ['image_generation.completed', 'image_edit.completed'] }),
    created_at: seconds('When the image was generated'),
    model: STRING,
    cost: usd('The charged amount for all images of the request'),
    output_format: text('The format, detected from the content', { examples: ['png'] }),
    b64_json: text('The image in base64'),
    content_type: text('The media type of the image', { examples: ['image/png'] }),
  }),
);
