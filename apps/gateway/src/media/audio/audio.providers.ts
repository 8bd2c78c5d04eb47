import type { Provider } from '@nestjs/common';
import { AudioDurationCounter, SpeakHandler, TranscribeHandler } from '#application';
import { WorkerAudioDurationCounter } from '#connectors';
import { ProcessRole } from '#modules';
import { AudioServer } from './audio-server.ts';

export const audioProviders: readonly Provider[] = [
  SpeakHandler,
  TranscribeHandler,
  {
    provide: AudioDurationCounter,
    inject: [ProcessRole],
    useFactory: (role: ProcessRole) => role.closeOnExit(new WorkerAudioDurationCounter()),
  },
  {
    provide: AudioServer,
    inject: [ProcessRole],
    useFactory: (role: ProcessRole) => role.closeOnExit(new AudioServer()),
  },
];
