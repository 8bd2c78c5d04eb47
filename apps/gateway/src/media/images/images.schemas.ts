import { nameSchema } from '../../openapi/operation.ts';
import { array, COUNT, object, STRING, seconds, text, usd } from '../../openapi/schemas.ts';

const TOKEN_DETAILS = object({ text_tokens: COUNT, image_tokens: COUNT });
const USAGE = object({
  input_tokens: COUNT,
  input_tokens_details: TOKEN_DETAILS,
  output_tokens: COUNT,
  output_tokens_details: TOKEN_DETAILS,
  total_tokens: COUNT,
});
const SIZE = text('The size, as the provider reports it', { examples: ['1024x1024'] });
const QUALITY = text('The quality, as the provider reports it', { examples: ['medium'] });
const BACKGROUND = text('The background, as the provider reports it', { examples: ['opaque'] });
const OUTPUT_FORMAT = text('The format, detected from the content', { examples: ['png'] });

export const ImageList = nameSchema(
  'ImageList',
  object(
    {
      created: seconds('When the images were generated'),
      model: STRING,
      cost: usd('The charged amount'),
      data: array(
        object(
          {
            url: text('A signed URL that needs no credential and expires after 24 hours'),
            b64_json: text('The image in base64'),
            content_type: text('The media type, detected from the content', { examples: ['image/png'] }),
          },
          ['url', 'b64_json'],
        ),
      ),
      size: SIZE,
      quality: QUALITY,
      background: BACKGROUND,
      output_format: OUTPUT_FORMAT,
      usage: { ...USAGE, description: 'The tokens of all images; missing if the provider bills by the image' },
    },
    ['size', 'quality', 'background', 'output_format', 'usage'],
  ),
);

export const ImageEvent = nameSchema(
  'ImageEvent',
  object({
    type: text('The type of the event', { enum: ['image_generation.completed', 'image_edit.completed'] }),
    created_at: seconds('When the image was generated'),
    model: STRING,
    cost: usd('The charged amount for all images of the request'),
    size: { ...SIZE, description: `${SIZE.description}, or \`auto\`` },
    quality: { ...QUALITY, description: `${QUALITY.description}, or \`auto\`` },
    background: { ...BACKGROUND, description: `${BACKGROUND.description}, or \`auto\`` },
    output_format: OUTPUT_FORMAT,
    usage: { ...USAGE, description: 'The tokens of all images; zeros if the provider bills by the image' },
    b64_json: text('The image in base64'),
    content_type: text('The media type of the image', { examples: ['image/png'] }),
  }),
);
