/** What a recording is, by its content, and how long it is at most. */
import { mp4Milliseconds } from './mp4.ts';
import { isMpegAudio, mpegMilliseconds } from './mpeg-audio.ts';
import { programStreamMilliseconds } from './program-stream.ts';
import { waveMilliseconds } from './wave.ts';
import { webmMilliseconds } from './webm.ts';

export interface CountedRecording {
  readonly mediaType: string;
  readonly extension: string;
  readonly milliseconds: number;
}

interface Format extends Omit<CountedRecording, 'milliseconds'> {
  is(bytes: Buffer): boolean;
  count(bytes: Buffer): number;
}

const ascii = (bytes: Buffer, from: number, to: number) => bytes.toString('latin1', from, to);
const isMp4 = (bytes: Buffer) => ascii(bytes, 4, 8) === 'ftyp';
const isSoundAlone = (bytes: Buffer) => /^M4[AB] $/.test(ascii(bytes, 8, 12));
const DOCUMENT_TYPE_WITHIN = 256;

const FORMATS: readonly Format[] = [
  {
    mediaType: 'audio/wav',
    extension: 'wav',
    is: (bytes) => ascii(bytes, 0, 4) === 'RIFF' && ascii(bytes, 8, 12) === 'WAVE',
    count: waveMilliseconds,
  },
  {
    mediaType: 'audio/mp4',
    extension: 'm4a',
    is: (bytes) => isMp4(bytes) && isSoundAlone(bytes),
    count: mp4Milliseconds,
  },
  { mediaType: 'video/mp4', extension: 'mp4', is: isMp4, count: mp4Milliseconds },
  {
    mediaType: 'video/webm',
    extension: 'webm',
    is: (bytes) =>
      bytes.readUInt32BE(0) === 0x1a45dfa3 && bytes.subarray(0, DOCUMENT_TYPE_WITHIN).includes('webm', 0, 'latin1'),
    count: webmMilliseconds,
  },
  {
    mediaType: 'video/mpeg',
    extension: 'mpeg',
    is: (bytes) => bytes.readUInt32BE(0) === 0x000001ba,
    count: programStreamMilliseconds,
  },
  { mediaType: 'audio/mpeg', extension: 'mp3', is: isMpegAudio, count: mpegMilliseconds },
];

/** Undefined where it is none that is known here, or has no sound. */
export function measureRecording(bytes: Buffer): CountedRecording | undefined {
  if (bytes.length < 12) return undefined;
  const format = FORMATS.find(({ is }) => is(bytes));
  if (!format) return undefined;
  const milliseconds = format.count(bytes);
  return milliseconds > 0 ? { mediaType: format.mediaType, extension: format.extension, milliseconds } : undefined;
}
