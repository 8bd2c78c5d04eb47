/** Detects the format of a recording by its content and calculates its maximum duration. */
import { measureMp4Ms } from './mp4.ts';
import { isMpegAudio, measureMpegMs } from './mpeg-audio.ts';
import { measureProgramStreamMs } from './program-stream.ts';
import { measureWaveMs } from './wave.ts';
import { measureWebmMs } from './webm.ts';

export interface MeasuredRecording {
  readonly mediaType: string;
  readonly extension: string;
  readonly milliseconds: number;
}

interface RecordingFormat extends Omit<MeasuredRecording, 'milliseconds'> {
  matches(bytes: Buffer): boolean;
  measureMs(bytes: Buffer): number;
}

const readAscii = (bytes: Buffer, from: number, to: number) => bytes.toString('latin1', from, to);
const isMp4 = (bytes: Buffer) => readAscii(bytes, 4, 8) === 'ftyp';
const isAudioOnly = (bytes: Buffer) => /^M4[AB] $/.test(readAscii(bytes, 8, 12));
const DOCUMENT_TYPE_MAX_BYTES = 256;

const FORMATS: readonly RecordingFormat[] = [
  {
    mediaType: 'audio/wav',
    extension: 'wav',
    matches: (bytes) => readAscii(bytes, 0, 4) === 'RIFF' && readAscii(bytes, 8, 12) === 'WAVE',
    measureMs: measureWaveMs,
  },
  {
    mediaType: 'audio/mp4',
    extension: 'm4a',
    matches: (bytes) => isMp4(bytes) && isAudioOnly(bytes),
    measureMs: measureMp4Ms,
  },
  { mediaType: 'video/mp4', extension: 'mp4', matches: isMp4, measureMs: measureMp4Ms },
  {
    mediaType: 'video/webm',
    extension: 'webm',
    matches: (bytes) =>
      bytes.readUInt32BE(0) === 0x1a45dfa3 && bytes.subarray(0, DOCUMENT_TYPE_MAX_BYTES).includes('webm', 0, 'latin1'),
    measureMs: measureWebmMs,
  },
  {
    mediaType: 'video/mpeg',
    extension: 'mpeg',
    matches: (bytes) => bytes.readUInt32BE(0) === 0x000001ba,
    measureMs: measureProgramStreamMs,
  },
  { mediaType: 'audio/mpeg', extension: 'mp3', matches: isMpegAudio, measureMs: measureMpegMs },
];

/**
 * Returns the format and the maximum duration; undefined for an unsupported format and for a file without audio.
 * @throws RangeError for too many tracks
 */
export function measureRecording(bytes: Buffer): MeasuredRecording | undefined {
  if (bytes.length < 12) return undefined;
  const format = FORMATS.find(({ matches }) => matches(bytes));
  if (!format) return undefined;
  const milliseconds = format.measureMs(bytes);
  return milliseconds > 0 ? { mediaType: format.mediaType, extension: format.extension, milliseconds } : undefined;
}
