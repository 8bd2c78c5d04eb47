import { IsIn, IsOptional, IsString, MaxLength } from 'class-validator';
import type { SpeechBody, TranscriptionBody } from '#application';
import { IsModelId, IsNumberBetween, isStorableText, Satisfies } from '../../edge/validation/validation.ts';
import { Field } from '../../openapi/request-schema.ts';
import { STRING, text } from '../../openapi/schemas.ts';
import { TRANSCRIPT_FORMATS, type TranscriptFormat } from './transcript-wire.ts';

const MAX_PROMPT = 4_096;
const MAX_LANGUAGE = 35;
const FORMATS = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'];

function isVoice(value: unknown): boolean {
  return isStorableText(value) || isStorableText((value as { readonly id?: unknown } | null)?.id);
}

// The validation rules of a field run from the last to the first.
export class TranscriptionRequest implements TranscriptionBody {
  [field: string]: unknown;

  @IsOptional()
  @IsModelId('The id of a transcription model; `nova-3` by default')
  model?: string | null;

  @IsOptional()
  @IsIn(TRANSCRIPT_FORMATS, { message: `response_format must be one of ${TRANSCRIPT_FORMATS.join(', ')}` })
  response_format?: TranscriptFormat | null;

  @Field(text('The spoken language, such as `en`, or `multi` to detect it'))
  @IsOptional()
  @MaxLength(MAX_LANGUAGE, { message: 'language must be a code such as en, or multi' })
  @IsString({ message: 'language must be a string' })
  language?: string | null;

  @Field(text('A text that guides the style, for models that support it'))
  @IsOptional()
  @MaxLength(MAX_PROMPT, { message: `prompt must have at most ${MAX_PROMPT} characters` })
  @IsString({ message: 'prompt must be a string' })
  prompt?: string | null;

  @IsOptional()
  @IsNumberBetween(0, 1)
  temperature?: number | null;

  @Field({
    description: 'Without effect: `verbose_json` always has segments, and words if the provider sends them',
    oneOf: [STRING, { type: 'array', items: STRING }],
  })
  @IsOptional()
  timestamp_granularities?: unknown;
}

export class SpeechRequest implements SpeechBody {
  [field: string]: unknown;

  @Field(text('The text to speak'))
  @Satisfies(isStorableText, 'input must be a string without NUL characters or unpaired surrogates')
  input!: string;

  @IsOptional()
  @IsModelId('The id of a speech model; by default `deepgram_aura_2`, or a model that speaks `language`')
  model?: string | null;

  @Field({
    description:
      'The id or the name of a voice. A model uses its default voice instead of an OpenAI voice that it lacks.',
    oneOf: [STRING, { type: 'object', properties: { id: STRING }, required: ['id'] }],
  })
  @IsOptional()
  @Satisfies(isVoice, 'voice must be a string, or an object whose id is a string')
  voice?: string | { readonly id: string } | null;

  @Field(
    text('A language code such as `en`. Selects a voice that speaks the language; a requested voice must speak it.'),
  )
  @IsOptional()
  @MaxLength(MAX_LANGUAGE, { message: 'language must be a code such as en' })
  @IsString({ message: 'language must be a string' })
  language?: string | null;

  @IsOptional()
  @IsIn(FORMATS, { message: `response_format must be one of ${FORMATS.join(', ')}` })
  response_format?: string | null;

  @IsOptional()
  @IsNumberBetween(0.25, 4)
  speed?: number | null;

  @Field(text('Instructions for the voice; ignored by models that do not support them'))
  @IsOptional()
  @MaxLength(MAX_PROMPT, { message: `instructions must have at most ${MAX_PROMPT} characters` })
  @IsString({ message: 'instructions must be a string' })
  instructions?: string | null;
}

export class VoicesQuery {
  @Field(text('Lists only voices of this language, a code such as `en`, and multilingual voices (`multi`)'))
  @IsOptional()
  @MaxLength(MAX_LANGUAGE, { message: 'language must be a code such as en' })
  @IsString({ message: 'language must be a string' })
  language?: string;
}
