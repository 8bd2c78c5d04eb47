/**
 * What providers of speech accept and send, by the types of SDKs that are only installed to make the schemas.
 * `npm run contracts` copies this directory to the SDKs, so that the imports resolve.
 */
import type { Deepgram } from '@deepgram/sdk';
import type { ElevenLabsError, ElevenLabsSpeechQuery, ElevenLabsSpeechRequest } from './elevenlabs.ts';

export interface SpeechContracts {
  elevenlabs: {
    speechQuery: ElevenLabsSpeechQuery;
    speechRequest: ElevenLabsSpeechRequest;
    error: ElevenLabsError;
  };
  deepgram: {
    listenQuery: Deepgram.listen.v1.MediaTranscribeRequestOctetStream;
    listenResponse: Deepgram.ListenV1Response;
    speakQuery: Omit<Deepgram.speak.v1.SpeakV1Request, 'text'>;
    speakRequest: Pick<Deepgram.speak.v1.SpeakV1Request, 'text'>;
    error: Deepgram.ErrorResponseLegacyError | Deepgram.ErrorResponseModernError;
  };
}
