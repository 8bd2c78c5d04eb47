/** The output formats of speech providers. The rate applies to WAV, PCM, μ-law and A-law; others have a fixed one. */
import { createAac, createFlac, createMp3, createOggOpus, createPcm, createToneWave } from './files/audio.ts';

export type VoiceFormat = 'mp3' | 'opus' | 'aac' | 'flac' | 'wav' | 'pcm' | 'mulaw' | 'alaw';

const MULAW_SILENCE = 0xff;
const ALAW_SILENCE = 0xd5;

/** Returns silence of about this length in the format. */
export function createSpeech(format: VoiceFormat, seed: string, seconds: number, rate = 24_000): Buffer {
  switch (format) {
    case 'mp3':
      return createMp3(seed, seconds);
    case 'opus':
      return createOggOpus(seed, seconds);
    case 'aac':
      return createAac(seconds);
    case 'flac':
      return createFlac(seed, seconds);
    case 'wav':
      return createToneWave(seed, seconds, { rate });
    case 'pcm':
      return createPcm(seed, seconds, { rate });
    case 'mulaw':
      return Buffer.alloc(Math.round(seconds * rate), MULAW_SILENCE);
    case 'alaw':
      return Buffer.alloc(Math.round(seconds * rate), ALAW_SILENCE);
  }
}
