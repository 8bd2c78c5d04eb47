import { type SpeechAudio, UpstreamError } from '#application';
import type { ProviderHttpResponse } from './provider-request.ts';

/** Sound as it comes; what is none has cost nothing that could be delivered. */
export function toSpeechAudio(
  response: ProviderHttpResponse,
  details: Pick<SpeechAudio, 'characters' | 'vendorId'>,
): SpeechAudio {
  const mediaType = String(response.headers['content-type'] ?? '')
    .toLowerCase()
    .trim();
  if (!/^(audio\/|application\/octet-stream)/.test(mediaType))
    throw new UpstreamError('upstream_error', 'The upstream sent something else than sound', {
      status: response.status,
      deliveredText: '',
      vendorId: details.vendorId,
    });
  return { mediaType, bytes: response.chunks(), ...details };
}
