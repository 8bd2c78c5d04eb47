/** What ElevenLabs says when it refuses or fails: https://elevenlabs.io/docs/eleven-api/resources/errors */
import { UpstreamFailure } from '#application';
import { refusalWith } from '../../http/http-endpoint.ts';
import type { AnswerHeaders } from '../../http/vendor-request.ts';

/** @returns the vendor's id of an answer */
export function requestIdIn(headers: AnswerHeaders): string | undefined {
  const id = headers['request-id'];
  return typeof id === 'string' && id !== '' ? id.slice(0, 200) : undefined;
}

/** An answer of ElevenLabs' with a status that is no success. */
export function elevenLabsRefusal(status: number, headers: AnswerHeaders, body: string): UpstreamFailure {
  const { code, message, retryAfterSeconds } = refusalWith(status, headers, wordsIn(body));
  return new UpstreamFailure(code, message, { status, retryAfterSeconds, vendorId: requestIdIn(headers) });
}

/** `detail` is a text, an object with a message, or a list of what is wrong with which field. */
function wordsIn(body: string): string | undefined {
  try {
    const { detail } = JSON.parse(body) as { readonly detail?: unknown };
    const [first] = [detail].flat() as readonly unknown[];
    if (typeof first === 'string') return first;
    const { message, msg } = (first ?? {}) as { readonly message?: unknown; readonly msg?: unknown };
    return [message, msg].find((each): each is string => typeof each === 'string' && each !== '');
  } catch {
    return undefined;
  }
}
