import type { MeasuredAudio } from './mpeg-frames.ts';

/**
 * Formats in which each sample has the number of bits that the header states: integer, floating point, A-law, μ-law,
 * and the extensible format.
 */
const UNCOMPRESSED_FORMATS = new Set([1, 3, 6, 7, 0xfffe]);

const ADPCM_FORMATS = new Set([0x02, 0x11]);

/**
 * Measures the samples of a WAV file. Their stated size counts only if another chunk or the end of the file follows
 * them. Otherwise all bytes until the end of the file are samples.
 */
export function measureWave(bytes: Buffer): MeasuredAudio | undefined {
  let format: { readonly channels: number; readonly bytesPerSecond: number } | undefined;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const name = bytes.toString('latin1', at, at + 4);
    const size = bytes.readUInt32LE(at + 4);
    if (name === 'fmt ' && at + 24 <= bytes.length) format = parseFormat(bytes, at + 8);
    if (name === 'data') {
      if (!format) return undefined;
      const availableBytes = bytes.length - at - 8;
      const isComplete = size <= availableBytes && isChunk(bytes, at + 8 + size + (size % 2));
      return { seconds: (isComplete ? size : availableBytes) / format.bytesPerSecond, channels: format.channels };
    }
    at += 8 + size + (size % 2);
  }
  return undefined;
}

function parseFormat(bytes: Buffer, at: number) {
  const channels = bytes.readUInt16LE(at + 2);
  const rate = bytes.readUInt32LE(at + 4);
  // ADPCM has a fixed number of samples per block.
  if (ADPCM_FORMATS.has(bytes.readUInt16LE(at)) && bytes.length >= at + 20) {
    const bytesPerSecond = (rate * bytes.readUInt16LE(at + 12)) / bytes.readUInt16LE(at + 18);
    return Number.isFinite(bytesPerSecond) ? { channels, bytesPerSecond } : undefined;
  }
  const computed = (rate * channels * bytes.readUInt16LE(at + 14)) / 8;
  const bytesPerSecond = UNCOMPRESSED_FORMATS.has(bytes.readUInt16LE(at)) ? computed : bytes.readUInt32LE(at + 8);
  return bytesPerSecond > 0 ? { channels, bytesPerSecond } : undefined;
}

/** Whether this offset is at or after the end of the file, or four characters of a chunk name are there. */
function isChunk(bytes: Buffer, at: number): boolean {
  return at >= bytes.length || /^[A-Za-z0-9 ]{4}$/.test(bytes.toString('latin1', at, at + 4));
}
