import type { Provider } from '@nestjs/common';
import { AudioDurationCounter, SpeakHandler, TranscribeHandler } from '#application';
import { WorkerAudioDurationCounter } from '#connectors';
import { Role } from '#modules';
import { AudioListener } from './audio-listener.ts';

export const soundProviders: readonly Provider[] = [
  SpeakHandler,
  TranscribeHandler,
  {
    provide: AudioDurationCounter,
    inject: [Role],
    useFactory: (role: Role) => role.keep(new WorkerAudioDurationCounter()),
  },
  { provide: AudioListener, inject: [Role], useFactory: (role: Role) => role.keep(new AudioListener()) },
];
