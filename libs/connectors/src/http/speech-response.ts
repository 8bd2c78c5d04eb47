import { type SpeechAudio, UpstreamError } from '#application';
import type { ProviderHttpResponse } from './provider-request.ts';

/**
 * Returns the audio of a speech response while it arrives.
 * @throws UpstreamError if the content type is neither `audio/*` nor `application/octet-stream`. Nothing was delivered,
 * but the provider may invoice the call.
 */
export function toSpeechAudio(
  response: ProviderHttpResponse,
  details: Pick<SpeechAudio, 'characters' | 'vendorId'>,
): SpeechAudio {
  const mediaType = String(response.headers['content-type'] ?? '')
    .toLowerCase()
    .trim();
  if (!/^(audio\/|application\/octet-stream)/.test(mediaType))
    throw new UpstreamError('upstream_error', 'The provider sent something other than audio', {
      status: response.status,
      deliveredText: '',
      vendorId: details.vendorId,
    });
  return { mediaType, bytes: response.chunks(), ...details };
}
