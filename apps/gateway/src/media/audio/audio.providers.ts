import type { Provider } from '@nestjs/common';
import { AudioDurationCounter, SpeakHandler, TranscribeHandler } from '#application';
import { CountedLengths } from '#connectors';
import { Role } from '#modules';
import { AudioListener } from './audio-listener.ts';

export const soundProviders: readonly Provider[] = [
  SpeakHandler,
  TranscribeHandler,
  { provide: AudioDurationCounter, inject: [Role], useFactory: (role: Role) => role.keep(new CountedLengths()) },
  { provide: AudioListener, inject: [Role], useFactory: (role: Role) => role.keep(new AudioListener()) },
];
