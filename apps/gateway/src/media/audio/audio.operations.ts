import { jsonContent, type OperationOptions } from '../../openapi/operation.ts';
import { SpeechRequest, TranscriptionRequest, VoicesQuery } from './audio.requests.ts';
import { AudioModelList, SPEECH, TRANSCRIPT, VoiceList } from './audio.schemas.ts';

export const MAX_RECORDING_BYTES = 25 * 1024 * 1024;

export const transcribe: OperationOptions = {
  id: 'createTranscription',
  tag: 'Inference',
  summary: 'Transcribes speech',
  description:
    'Supports MP3, MP4, MPEG, MPGA, M4A, WAV and WebM, detected from the content. The hold covers the duration of the frames or packets of the file; the duration that the provider bills is charged.',
  auth: 'key',
  paid: true,
  upload: { maxBytes: MAX_RECORDING_BYTES, files: ['file'] },
  body: TranscriptionRequest,
  example: { model: 'nova-3', response_format: 'verbose_json' },
  response: TRANSCRIPT,
  errors: [402, 404, 409, 410, 429, 502, 504],
};

export const speak: OperationOptions = {
  id: 'createSpeech',
  tag: 'Inference',
  summary: 'Generates speech from a text',
  description:
    'Audio is streamed as it arrives from the provider. It has the requested format if the model supports that, else it is MP3; `Content-Type` has the format. A voice that does not speak the requested language is rejected with 422.',
  auth: 'key',
  paid: true,
  body: SpeechRequest,
  example: { model: 'deepgram_aura_2', input: 'Every coin is counted.', voice: 'aura-2-thalia-en' },
  response: SPEECH,
  errors: [402, 404, 409, 410, 422, 429, 502, 504],
};

export const listVoices: OperationOptions = {
  id: 'listVoices',
  tag: 'Models',
  summary: 'Lists the voices of speech models',
  auth: 'public',
  cacheable: true,
  query: VoicesQuery,
  example: { language: 'en' },
  response: jsonContent(VoiceList),
};

export const listAudioModels: OperationOptions = {
  id: 'listAudioModels',
  tag: 'Models',
  summary: 'Lists the transcription and speech models with their prices',
  auth: 'public',
  cacheable: true,
  response: jsonContent(AudioModelList),
};
