/** Deepgram's speech: https://developers.deepgram.com/reference/text-to-speech/speak-request */
import type { SpeechAudio, SpeechCall } from '#application';
import { parseHeaderCount } from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import { toSpeechAudio } from '../../http/speech-response.ts';
import { getRequestId, toDeepgramError } from './errors.ts';

/** By OpenAI's name of the format; others are generated as MP3. */
const FORMATS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  mp3: { encoding: 'mp3' },
  opus: { encoding: 'opus', container: 'ogg' },
  aac: { encoding: 'aac' },
  flac: { encoding: 'flac' },
  wav: { encoding: 'linear16', container: 'wav', sample_rate: '24000' },
  pcm: { encoding: 'linear16', container: 'none', sample_rate: '24000' },
};
const MIN_SPEED = 0.7;
const MAX_SPEED = 1.5;

/** Deepgram has one model per voice, so the voice is sent as the model. */
export async function speak(
  http: ProviderHttp,
  headers: Readonly<Record<string, string>>,
  { input, voice, parameters, signal }: SpeechCall,
): Promise<SpeechAudio> {
  const format = FORMATS[String(parameters.response_format)] ?? FORMATS.mp3;
  const query = new URLSearchParams({
    model: voice,
    ...format,
    mip_opt_out: 'false',
    ...toSpeedParameter(voice, parameters),
  });
  const response = await http.request(`/v1/speak?${query}`, {
    method: 'POST',
    headers,
    body: { text: input },
    signal,
    mapErrorResponse: toDeepgramError,
  });
  return toSpeechAudio(response, {
    characters: parseHeaderCount(response.headers['dg-char-count']),
    vendorId: getRequestId(response.headers),
  });
}

/** Only English voices support a speed. */
function toSpeedParameter(voice: string, { speed }: SpeechCall['parameters']): Record<string, string> {
  if (speed === undefined || !voice.endsWith('-en')) return {};
  return { speed: String(Math.min(Math.max(Number(speed), MIN_SPEED), MAX_SPEED)) };
}
