/**
 * The maximum duration of a WAV file. Source: Microsoft, "Multimedia Programming Interface and Data Specifications",
 * 1991, and mmreg.h.
 */
import { measureMpegMs } from './mpeg-audio.ts';

/** Format tags. */
const PCM = 1;
const ADPCM_MICROSOFT = 2;
const FLOAT = 3;
const A_LAW = 6;
const MU_LAW = 7;
const ADPCM_IMA = 0x11;
const GSM = 0x31;
const MPEG = 0x50;
const MP3 = 0x55;
/** The actual format tag follows in the extension of the header. */
const EXTENSIBLE = 0xfffe;

const MAX_CHANNELS = 64;
const ADPCM_BITS = 4;
/** A block of GSM 6.10. */
const GSM_BLOCK = { bytes: 65, samples: 320 };

/**
 * Measures all bytes after the first possible start of the audio. If the file has several formats, the one with the
 * longest duration applies. Chunk sizes and byte rates are not trusted.
 */
export function measureWaveMs(bytes: Buffer): number {
  const start = bytes.indexOf('data', 12, 'latin1');
  if (start < 0) return 0;
  const audio = bytes.subarray(start + 8);
  let maxMs = 0;
  let hasMpeg = false;
  for (let at = bytes.indexOf('fmt ', 12, 'latin1'); at >= 0; at = bytes.indexOf('fmt ', at + 4, 'latin1')) {
    const length = calculateMilliseconds(audio.length, bytes.subarray(at + 8, at + 48));
    if (length === 'mpeg') hasMpeg = true;
    else maxMs = Math.max(maxMs, length);
  }
  return Math.ceil(Math.max(maxMs, hasMpeg ? measureMpegMs(audio) : 0));
}

/** Returns 0 for an invalid format and for unsupported codecs: some of them encode hours in a few bytes. */
function calculateMilliseconds(size: number, format: Buffer): number | 'mpeg' {
  if (format.length < 16) return 0;
  const formatTag = format.readUInt16LE(0);
  const tag = formatTag === EXTENSIBLE && format.length >= 26 ? format.readUInt16LE(24) : formatTag;
  const channels = format.readUInt16LE(2);
  const rate = format.readUInt32LE(4);
  if (channels === 0 || channels > MAX_CHANNELS || rate === 0) return 0;
  const toMilliseconds = (bits: number) => (size / ((rate * channels * bits) / 8)) * 1_000;
  switch (tag) {
    case PCM:
    case FLOAT:
    case A_LAW:
    case MU_LAW:
      return toMilliseconds(getSampleBits(tag, channels, format));
    case ADPCM_MICROSOFT:
    case ADPCM_IMA:
      return toMilliseconds(ADPCM_BITS);
    case MPEG:
    case MP3:
      return 'mpeg';
    case GSM:
      return ((size / GSM_BLOCK.bytes) * GSM_BLOCK.samples * 1_000) / rate;
    default:
      return 0;
  }
}

/**
 * Returns the bits of one sample: 8 for A-law and mu-law, else the minimum of the declared bits, the block size per
 * channel and 64. A value of 0 is ignored.
 */
function getSampleBits(tag: number, channels: number, format: Buffer): number {
  if (tag === A_LAW || tag === MU_LAW) return 8;
  const block = (format.readUInt16LE(12) / channels) * 8;
  const bits = format.readUInt16LE(14);
  return Math.min(...[block, bits].filter((value) => value > 0), 64);
}
