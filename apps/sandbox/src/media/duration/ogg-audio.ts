import type { MeasuredAudio } from './mpeg-frames.ts';
import { getOpusSeconds } from './opus.ts';

/**
 * Measures the audio in an Ogg file: Opus by its packets, Vorbis by the time of the last page.
 * @returns undefined for other codecs
 */
export function measureOgg(bytes: Buffer): MeasuredAudio | undefined {
  let seconds = 0;
  let packets = 0;
  let parts: Buffer[] = [];
  let head: Buffer | undefined;
  let lastTime = 0;
  for (let at = 0; at + 27 <= bytes.length && bytes.toString('latin1', at, at + 4) === 'OggS'; ) {
    const sizes = bytes.subarray(at + 27, at + 27 + (bytes[at + 26] ?? 0));
    const time = bytes.readBigInt64LE(at + 6);
    if (time > 0n) lastTime = Number(time);
    at += 27 + sizes.length;
    for (const size of sizes) {
      parts.push(bytes.subarray(at, at + size));
      at += size;
      if (size === 255) continue;
      const packet = Buffer.concat(parts);
      parts = [];
      head ??= packet;
      if (packets >= 2) seconds += getOpusSeconds(packet);
      packets += 1;
    }
  }
  if (head?.toString('latin1', 0, 8) === 'OpusHead') return { seconds, channels: head[9] ?? 1 };
  if (head?.toString('latin1', 1, 7) !== 'vorbis') return undefined;
  return { seconds: lastTime / head.readUInt32LE(12), channels: head[11] ?? 1 };
}
