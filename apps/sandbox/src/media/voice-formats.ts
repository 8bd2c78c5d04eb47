/** The formats that vendors speak in. Whatever rate is asked for, MP3 has 44.1 kHz and 128 kbit/s. */
import { aac, flac, mp3, oggOpus, pcm, wav } from './files/audio.ts';

export type VoiceFormat = 'mp3' | 'opus' | 'aac' | 'flac' | 'wav' | 'pcm' | 'mulaw' | 'alaw';

const MULAW_SILENCE = 0xff;
const ALAW_SILENCE = 0xd5;

/** Silence, as long as it takes to say it. */
export function spokenAs(format: VoiceFormat, of: string, seconds: number, rate = 24_000): Buffer {
  switch (format) {
    case 'mp3':
      return mp3(of, seconds);
    case 'opus':
      return oggOpus(of, seconds);
    case 'aac':
      return aac(seconds);
    case 'flac':
      return flac(of, seconds);
    case 'wav':
      return wav(of, seconds, { rate });
    case 'pcm':
      return pcm(of, seconds, { rate });
    case 'mulaw':
      return Buffer.alloc(Math.round(seconds * rate), MULAW_SILENCE);
    case 'alaw':
      return Buffer.alloc(Math.round(seconds * rate), ALAW_SILENCE);
  }
}
