/** ElevenLabs' speech, by the types of its SDK. The SDK renames fields and sends some of them in the query. */
import type { ElevenLabs } from '@elevenlabs/elevenlabs-js';
import type * as serialization from '@elevenlabs/elevenlabs-js/serialization/index.js';

type Parameters = ElevenLabs.StreamTextToSpeechRequest;

export interface ElevenLabsSpeechQuery {
  enable_logging?: Parameters['enableLogging'];
  optimize_streaming_latency?: Parameters['optimizeStreamingLatency'];
  output_format?: ElevenLabs.TextToSpeechStreamRequestOutputFormat | ElevenLabs.TextToSpeechConvertRequestOutputFormat;
}

export type ElevenLabsSpeechRequest = serialization.StreamTextToSpeechRequest.Raw;

/**
 * An object, or a list for an invalid field: https://elevenlabs.io/docs/eleven-api/resources/errors. The SDK lacks
 * `input` and `ctx`, which FastAPI adds: https://fastapi.tiangolo.com/tutorial/handling-errors/
 */
export type ElevenLabsError =
  | { detail: { status: string; message: string; type?: string; code?: string; request_id?: string; param?: string } }
  | { detail: (serialization.ValidationError.Raw & { input?: unknown; ctx?: Record<string, unknown> })[] };
