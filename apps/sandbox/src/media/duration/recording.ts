/**
 * Measures recordings by their frames, packets or samples, or else by the times in the file. A length in a header is
 * used only if the rest of the file agrees with it.
 */

import { measureMp4 } from './mp4-audio.ts';
import { type MeasuredAudio, measureMpeg, skipTag } from './mpeg-frames.ts';
import { measureOgg } from './ogg-audio.ts';
import { extractAudioStream } from './program-stream.ts';
import { measureWave } from './wave-audio.ts';
import { measureWebm } from './webm-audio.ts';

/** @returns undefined if the format is unknown, there is no audio, or a header or table ends early */
export function measureAudio(recording: Buffer): MeasuredAudio | undefined {
  try {
    const audio = selectReader(recording)?.(recording);
    return audio && audio.seconds > 0 ? audio : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined; // the file ends within a header or table
    throw error;
  }
}

/** @returns undefined in the same cases as `measureAudio` */
export function measureDurationMs(recording: Buffer): number | undefined {
  const audio = measureAudio(recording);
  return audio && Math.round(audio.seconds * 1_000);
}

/** Any format may follow an ID3 tag. */
function measureTagged(recording: Buffer): MeasuredAudio | undefined {
  const content = recording.subarray(skipTag(recording));
  return (selectReader(content) ?? measureMpeg)(content);
}

function selectReader(recording: Buffer): ((recording: Buffer) => MeasuredAudio | undefined) | undefined {
  const ascii = (from: number, to: number) => recording.toString('latin1', from, to);
  if (/^(RIFF|RF64)$/.test(ascii(0, 4)) && ascii(8, 12) === 'WAVE') return measureWave;
  if (ascii(4, 8) === 'ftyp' || ascii(4, 8) === 'moov') return measureMp4;
  if (ascii(0, 4) === 'OggS') return measureOgg;
  if (ascii(0, 4) === '\x1aE\xdf\xa3') return measureWebm;
  if (ascii(0, 4) === '\0\0\x01\xba') return (bytes) => measureMpeg(extractAudioStream(bytes));
  if (ascii(0, 3) === 'ID3') return measureTagged;
  const isMpeg = recording[0] === 0xff && ((recording[1] ?? 0) & 0xe0) === 0xe0;
  return isMpeg ? measureMpeg : undefined;
}
