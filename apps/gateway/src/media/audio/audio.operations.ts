import { jsonContent, type OperationOptions } from '../../openapi/operation.ts';
import { SpeechRequest, TranscriptionRequest, VoicesQuery } from './audio.requests.ts';
import { AudioModelList, SPEECH, TRANSCRIPT, VoiceList } from './audio.schemas.ts';

export const MAX_RECORDING_BYTES = 25 * 1024 * 1024;

export const transcribe: OperationOptions = {
  id: 'createTranscription',
  tag: 'Inference',
  summary: 'Transcribes speech',
  description:
    'MP3, MP4, MPEG, MPGA, M4A, WAV or WebM, judged by their content. Held for is the length that its frames or packets come to, and charged is what the vendor bills.',
  auth: 'key',
  paid: true,
  upload: { maxBytes: MAX_RECORDING_BYTES, files: ['file'] },
  body: TranscriptionRequest,
  example: { model: 'nova-3', response_format: 'verbose_json' },
  response: TRANSCRIPT,
  errors: [402, 404, 409, 429, 502, 504],
};

export const speak: OperationOptions = {
  id: 'createSpeech',
  tag: 'Inference',
  summary: 'Speaks a text',
  description:
    'Sound comes as it is made, in the format that is asked for where the model has it, else as MP3; Content-Type says which. Voice and language that do not fit are 422.',
  auth: 'key',
  paid: true,
  body: SpeechRequest,
  example: { model: 'deepgram_aura_2', input: 'Every coin is counted.', voice: 'aura-2-thalia-en' },
  response: SPEECH,
  errors: [402, 404, 409, 422, 429, 502, 504],
};

export const listVoices: OperationOptions = {
  id: 'listVoices',
  tag: 'Models',
  summary: 'Lists the voices of models that speak',
  auth: 'public',
  query: VoicesQuery,
  example: { language: 'en' },
  response: jsonContent(VoiceList),
};

export const listAudioModels: OperationOptions = {
  id: 'listAudioModels',
  tag: 'Models',
  summary: 'Lists the models that transcribe and speak, with their prices',
  auth: 'public',
  response: jsonContent(AudioModelList),
};
