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

// Rules are checked from the last one up.
export class TranscriptionRequest implements TranscriptionBody {
  [field: string]: unknown;

  @IsOptional()
  @IsModelId('The id of a model that transcribes; `nova-3` by default')
  model?: string | null;

  @IsOptional()
  @IsIn(TRANSCRIPT_FORMATS, { message: `response_format must be one of ${TRANSCRIPT_FORMATS.join(', ')}` })
  response_format?: TranscriptFormat | null;

  @Field(text('The language that is spoken, such as `en`, or `multi` to have it found out'))
  @IsOptional()
  @MaxLength(MAX_LANGUAGE, { message: 'language must be a code such as en, or multi' })
  @IsString({ message: 'language must be a text' })
  language?: string | null;

  @Field(text('Guides the style, with models that take it'))
  @IsOptional()
  @MaxLength(MAX_PROMPT, { message: `prompt must have at most ${MAX_PROMPT} characters` })
  @IsString({ message: 'prompt must be a text' })
  prompt?: string | null;

  @IsOptional()
  @IsNumberBetween(0, 1)
  temperature?: number | null;

  @Field({ description: 'Taken as it is: `verbose_json` has both', oneOf: [STRING, { type: 'array', items: STRING }] })
  @IsOptional()
  timestamp_granularities?: unknown;
}

export class SpeechRequest implements SpeechBody {
  [field: string]: unknown;

  @Field(text('The text to speak'))
  @Satisfies(isStorableText, 'input must be a text')
  input!: string;

  @IsOptional()
  @IsModelId('The id of a model that speaks; `deepgram_aura_2` by default')
  model?: string | null;

  @Field({
    description: 'The id or the name of a voice. OpenAI’s names stand for the default voice with models of others',
    oneOf: [STRING, { type: 'object', properties: { id: STRING }, required: ['id'] }],
  })
  @IsOptional()
  @Satisfies(isVoice, 'voice must be the id of a voice, as text')
  voice?: string | { readonly id: string } | null;

  @Field(text('ISO 639-1, such as `en`: a voice that speaks it is chosen, or the given one is checked'))
  @IsOptional()
  @MaxLength(MAX_LANGUAGE, { message: 'language must be a code such as en' })
  @IsString({ message: 'language must be a text' })
  language?: string | null;

  @IsOptional()
  @IsIn(FORMATS, { message: `response_format must be one of ${FORMATS.join(', ')}` })
  response_format?: string | null;

  @IsOptional()
  @IsNumberBetween(0.25, 4)
  speed?: number | null;

  @Field(text('Taken, and followed by models that can'))
  @IsOptional()
  @MaxLength(MAX_PROMPT, { message: `instructions must have at most ${MAX_PROMPT} characters` })
  @IsString({ message: 'instructions must be a text' })
  instructions?: string | null;
}

export class VoicesQuery {
  @Field(text('Voices that speak this language, such as `en`'))
  @IsOptional()
  @MaxLength(MAX_LANGUAGE, { message: 'language must be a code such as en' })
  @IsString({ message: 'language must be a text' })
  language?: string;
}
