import type { Provider } from '@nestjs/common';
import { AudioDurationCounter, SpeakHandler, TranscribeHandler } from '#application';
import { WorkerAudioDurationCounter } from '#connectors';
import { ProcessRole } from '#modules';
import { AudioListener } from './audio-listener.ts';

export const soundProviders: readonly Provider[] = [
  SpeakHandler,
  TranscribeHandler,
  {
    provide: AudioDurationCounter,
    inject: [ProcessRole],
    useFactory: (role: ProcessRole) => role.keep(new WorkerAudioDurationCounter()),
  },
  { provide: AudioListener, inject: [ProcessRole], useFactory: (role: ProcessRole) => role.keep(new AudioListener()) },
];
