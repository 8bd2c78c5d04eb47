import { type Content, jsonContent, nameSchema } from '../../openapi/operation.ts';
import { array, COUNT, nullable, object, RETIREMENT_FIELDS, STRING, text, usd } from '../../openapi/schemas.ts';

const SECONDS = { type: 'number', minimum: 0 };
const USAGE = object({ type: { const: 'duration' }, seconds: COUNT, cost: usd('The charged amount') });

const TranscriptText = nameSchema('Transcript', object({ text: STRING, usage: USAGE }));

const VerboseTranscript = nameSchema(
  'VerboseTranscript',
  object({
    task: { const: 'transcribe' },
    language: STRING,
    duration: SECONDS,
    text: STRING,
    segments: array(
      object({
        id: COUNT,
        seek: COUNT,
        start: SECONDS,
        end: SECONDS,
        text: STRING,
        tokens: array(COUNT),
        temperature: { type: 'number' },
        avg_logprob: { type: 'number' },
        compression_ratio: { type: 'number' },
        no_speech_prob: { type: 'number' },
      }),
    ),
    words: array(object({ word: STRING, start: SECONDS, end: SECONDS })),
    usage: USAGE,
  }),
);

export const TRANSCRIPT: Content = {
  ...jsonContent({ anyOf: [VerboseTranscript, TranscriptText] }),
  'text/plain': STRING,
  'application/x-subrip': STRING,
  'text/vtt': STRING,
};

const AUDIO = { type: 'string', contentMediaType: 'application/octet-stream' };

/** The subtypes of audio media types, as providers name them. */
const AUDIO_TYPES = ['mpeg', 'ogg', 'opus', 'aac', 'flac', 'wav', 'pcm', 'l16'];

export const SPEECH: Content = Object.fromEntries(AUDIO_TYPES.map((type) => [`audio/${type}`, AUDIO]));

export const VoiceList = nameSchema(
  'VoiceList',
  object({
    object: { const: 'list' },
    data: array(
      object({
        id: STRING,
        name: STRING,
        provider: STRING,
        model_id: text('The model that has this voice'),
        language: text('An ISO 639-1 code, or `multi` for a voice that speaks all languages of its model'),
        gender: STRING,
        description: STRING,
      }),
    ),
  }),
);

export const AudioModelList = nameSchema(
  'AudioModelList',
  object({
    object: { const: 'list' },
    data: array(
      object({
        id: STRING,
        object: { const: 'model' },
        name: STRING,
        type: text('Speech to text (`stt`) or text to speech (`tts`)', { enum: ['stt', 'tts'] }),
        provider: STRING,
        unit: text('The unit of the prices', { enum: ['minute', '1k_characters'] }),
        base_price: usd('The price of a unit at the provider'),
        api_price: usd('The charged price of a unit'),
        ui_price: usd('The same as `api_price`'),
        variants: array(
          object({
            language: STRING,
            base_price: usd('The price of a unit at the provider'),
            api_price: usd('The charged price of a unit'),
            ui_price: usd('The same as `api_price`'),
          }),
        ),
        languages: array(STRING),
        max_characters: nullable(COUNT),
        ...RETIREMENT_FIELDS,
      }),
    ),
  }),
);
