/**
 * How long a recording is, as one finds out who decodes it: by its frames and packets. What its headers say of its length
 * is believed only where nothing else tells it.
 */

import { mp4Sound } from './mp4-audio.ts';
import { behindTag, type CountedSound, mpegFrames } from './mpeg-frames.ts';
import { oggSound } from './ogg-audio.ts';
import { programStream } from './program-stream.ts';
import { waveSound } from './wave-audio.ts';
import { webmSound } from './webm-audio.ts';

/** @returns undefined when it is none that is known, or when there is no sound in it */
export function soundIn(recording: Buffer): CountedSound | undefined {
  try {
    const sound = readerOf(recording)?.(recording);
    return sound && sound.seconds > 0 ? sound : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined; // it broke off where there must be more
    throw error;
  }
}

/** @returns undefined when it is none that is known */
export function millisecondsOf(recording: Buffer): number | undefined {
  const sound = soundIn(recording);
  return sound && Math.round(sound.seconds * 1_000);
}

/** Behind a tag stands whatever stands there. */
function taggedSound(recording: Buffer): CountedSound | undefined {
  const content = recording.subarray(behindTag(recording));
  return (readerOf(content) ?? mpegFrames)(content);
}

function readerOf(recording: Buffer): ((recording: Buffer) => CountedSound | undefined) | undefined {
  const ascii = (from: number, to: number) => recording.toString('latin1', from, to);
  if (/^(RIFF|RF64)$/.test(ascii(0, 4)) && ascii(8, 12) === 'WAVE') return waveSound;
  if (ascii(4, 8) === 'ftyp' || ascii(4, 8) === 'moov') return mp4Sound;
  if (ascii(0, 4) === 'OggS') return oggSound;
  if (ascii(0, 4) === '\x1aE\xdf\xa3') return webmSound;
  if (ascii(0, 4) === '\0\0\x01\xba') return (bytes) => mpegFrames(programStream(bytes));
  if (ascii(0, 3) === 'ID3') return taggedSound;
  const isMpeg = recording[0] === 0xff && ((recording[1] ?? 0) & 0xe0) === 0xe0;
  return isMpeg ? mpegFrames : undefined;
}
