/**
 * Measures the audio in a WebM or Matroska file: Opus by its packets, other codecs by the time of the last block.
 * Sources: RFC 8794, 9559.
 */
import type { MeasuredAudio } from './mpeg-frames.ts';
import { getOpusSeconds } from './opus.ts';

/** Master elements whose content is parsed. All other elements are treated as leaves. */
const MASTERS = new Set([0x18538067, 0x1549a966, 0x1f43b675, 0x1654ae6b, 0xae, 0xe1, 0xa0]);
const SCALE = 0x2ad7b1;
const CLUSTER_TIME = 0xe7;
const TRACK = 0xae;
const NUMBER = 0xd7;
const CODEC = 0x86;
const CHANNELS = 0x9f;
const BLOCKS = new Set([0xa3, 0xa1]);
const NANOSECONDS = 1_000_000;

interface Track {
  number: number;
  codec: string;
  channels: number;
  packets: number;
  last: number;
}

/** @returns undefined without an audio track */
export function measureWebm(bytes: Buffer): MeasuredAudio | undefined {
  const tracks: Track[] = [];
  let scale = NANOSECONDS;
  let clusterTime = 0;
  for (const { id, content } of parseElements(bytes)) {
    const track = tracks.at(-1);
    if (id === TRACK) tracks.push({ number: 0, codec: '', channels: 1, packets: 0, last: 0 });
    else if (id === SCALE) scale = parseNumber(content);
    else if (id === CLUSTER_TIME) clusterTime = parseNumber(content);
    else if (id === NUMBER && track) track.number = parseNumber(content);
    else if (id === CODEC && track) track.codec = content.toString('latin1').replace(/\0+$/, '');
    else if (id === CHANNELS && track) track.channels = parseNumber(content);
    else if (BLOCKS.has(id) && content.length >= 4) addBlock(tracks, content, (clusterTime * scale) / 1e9, scale / 1e9);
  }
  const audioTrack = tracks.find(({ codec }) => codec.startsWith('A_'));
  if (!audioTrack) return undefined;
  return {
    seconds: audioTrack.codec === 'A_OPUS' ? audioTrack.packets : audioTrack.last,
    channels: audioTrack.channels,
  };
}

/**
 * @param start time of the cluster in seconds
 * @param unit time unit within the cluster in seconds
 */
function addBlock(tracks: readonly Track[], block: Buffer, start: number, unit: number): void {
  const track = tracks.find(({ number }) => number === ((block[0] ?? 0) & 0x7f));
  if (!track) return;
  track.last = Math.max(track.last, start + block.readInt16BE(1) * unit);
  track.packets += getOpusSeconds(block.subarray(4)); // one packet per block; laced blocks are not supported
}

/**
 * Yields the elements in order, up to the first invalid one. The size of a master element may be unknown and is not
 * needed.
 */
function* parseElements(bytes: Buffer): Generator<{ readonly id: number; readonly content: Buffer }> {
  for (let at = 0; at < bytes.length; ) {
    const idLength = Math.clz32(bytes[at] ?? 0) - 23;
    if (idLength > 4 || at + idLength >= bytes.length) return;
    const id = bytes.readUIntBE(at, idLength);
    at += idLength;
    const sizeLength = Math.clz32(bytes[at] ?? 0) - 23;
    if (sizeLength > 8 || at + sizeLength > bytes.length) return;
    let size = (bytes[at] ?? 0) & (0xff >> sizeLength);
    for (let i = 1; i < sizeLength; i += 1) size = size * 256 + (bytes[at + i] ?? 0);
    at += sizeLength;
    yield { id, content: MASTERS.has(id) ? Buffer.alloc(0) : bytes.subarray(at, at + size) };
    if (!MASTERS.has(id)) at += size;
  }
}

function parseNumber(content: Buffer): number {
  return content.reduce((value, byte) => value * 256 + byte, 0);
}
