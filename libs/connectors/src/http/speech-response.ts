import { type SpeechAudio, UpstreamError } from '#application';
import type { ProviderHttpResponse } from './provider-request.ts';

/** Sound as it comes; what is none has cost nothing that could be delivered. */
export function toSpeechAudio(
  answer: ProviderHttpResponse,
  more: Pick<SpeechAudio, 'characters' | 'vendorId'>,
): SpeechAudio {
  const mediaType = String(answer.headers['content-type'] ?? '')
    .toLowerCase()
    .trim();
  if (!/^(audio\/|application\/octet-stream)/.test(mediaType))
    throw new UpstreamError('upstream_error', 'The upstream sent something else than sound', {
      status: answer.status,
      deliveredText: '',
      vendorId: more.vendorId,
    });
  return { mediaType, bytes: answer.pieces(), ...more };
}
