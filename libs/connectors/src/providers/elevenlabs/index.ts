/** ElevenLabs' text to speech: https://elevenlabs.io/docs/api-reference/text-to-speech/stream */
import type { Provider, SpeechAudio, SpeechCall } from '#application';
import { parseHeaderCount } from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import { toSpeechAudio } from '../../http/speech-response.ts';
import { createCredentialHeader, type ProviderClient, type ProviderConfig } from '../provider.ts';
import { getRequestId, toElevenLabsError, toKeyCheckError } from './errors.ts';

/** The header of a WAV file contains the length of the audio, so this format is not streamed. */
const WAV = 'wav_24000';
/** By OpenAI's name of the format. Any other format is generated as MP3. */
const FORMATS: Readonly<Record<string, string>> = {
  mp3: 'mp3_44100_128',
  opus: 'opus_48000_128',
  wav: WAV,
  pcm: 'pcm_24000',
};
const MIN_SPEED = 0.7;
const MAX_SPEED = 1.2;
/** Models that detect the language of the text and reject a language code. */
const MODELS_WITHOUT_LANGUAGE: ReadonlySet<string> = new Set(['eleven_multilingual_v2']);

export function createElevenLabsProvider(
  { http, credential }: ProviderClient,
  { keyCheck }: Pick<ProviderConfig, 'keyCheck'> = {},
) {
  const headers = createCredentialHeader('xi-api-key', credential);
  return {
    speech: (call) => speak(http, headers, call),
    checkKey: http.createKeyCheck(keyCheck, { headers, mapErrorResponse: toKeyCheckError }),
    close: () => http.close(),
  } satisfies Provider;
}

async function speak(
  http: ProviderHttp,
  headers: Readonly<Record<string, string>>,
  { model, input, voice, parameters, signal }: SpeechCall,
): Promise<SpeechAudio> {
  const { response_format, speed, language } = parameters;
  const format = FORMATS[String(response_format)] ?? FORMATS.mp3;
  const clampedSpeed = speed === undefined ? undefined : Math.min(Math.max(Number(speed), MIN_SPEED), MAX_SPEED);
  const pathSuffix = format === WAV ? '' : '/stream';
  const path = `/v1/text-to-speech/${encodeURIComponent(voice)}${pathSuffix}?output_format=${format}`;
  const response = await http.request(path, {
    method: 'POST',
    headers,
    body: {
      text: input,
      model_id: model,
      ...(language === undefined || MODELS_WITHOUT_LANGUAGE.has(model) ? {} : { language_code: language }),
      ...(clampedSpeed === undefined ? {} : { voice_settings: { speed: clampedSpeed } }),
    },
    signal,
    mapErrorResponse: toElevenLabsError,
  });
  return toSpeechAudio(response, {
    characters: parseHeaderCount(response.headers['x-character-count']),
    vendorId: getRequestId(response.headers),
  });
}
