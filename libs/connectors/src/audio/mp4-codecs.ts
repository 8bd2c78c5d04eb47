/**
 * The maximum duration of an audio sample, by codec. Source: ISO/IEC 14496-1, -3 and -14, ETSI TS 102 366, RFC 7845.
 */
import { MAX_OPUS_MS } from './opus.ts';

export interface SampleLength {
  readonly milliseconds: number;
  /** Size above which a sample may contain several samples of this duration; for PCM, the size of one sample. */
  readonly bytes: number;
  /** The number of samples is calculated from the size of the file, not read from its tables. */
  readonly isPcm?: boolean;
}

const AAC_RATES: readonly number[] = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
];
const MIN_AAC_RATE = 7_350;
const AAC_SAMPLES = 1_024;
const AAC_LOW_DELAY_SAMPLES = 512;
/** xHE-AAC. */
const USAC_SAMPLES = 4_096;
/** A stereo stream of 256 kbit/s at 44.1 kHz has 372 bytes per channel and packet; the standard allows 768. */
const AAC_BYTES_PER_CHANNEL = 400;
/** Audio object types of AAC and its variants. The packets of other types vary in duration. */
const AAC_TYPES: ReadonlySet<number> = new Set([1, 2, 3, 4, 5, 6, 17, 19, 20, 22, 23, 29, 39, 42]);
const AC3_SAMPLES = 1_536;
const MIN_AC3_RATE = 32_000;
const AC3_BYTES = 64;
const ANY_SIZE = Number.POSITIVE_INFINITY;
/** Bits per PCM sample (QuickTime File Format); 0 if the sample description specifies them. */
const PCM_BITS: Readonly<Record<string, number>> = {
  'raw ': 0,
  NONE: 0,
  twos: 0,
  sowt: 0,
  ulaw: 8,
  alaw: 8,
  in24: 24,
  in32: 32,
  fl32: 32,
  fl64: 64,
};
/** Object types of MPEG-2 and MPEG-1 audio in `esds`. */
const MPEG_AUDIO: ReadonlySet<number> = new Set([0x69, 0x6b]);
const AAC: ReadonlySet<number> = new Set([0x40, 0x66, 0x67, 0x68]);

/**
 * @param entry the content of a sample description
 * @returns `mpeg` if the samples are MPEG audio frames; undefined for an unknown codec, and for an invalid or unusual
 * description
 */
export function parseSampleLength(type: string, entry: Buffer): SampleLength | 'mpeg' | undefined {
  switch (type) {
    case 'mp4a':
      return parseMp4aLength(entry);
    case '.mp3':
      return 'mpeg';
    case 'Opus':
      return { milliseconds: MAX_OPUS_MS, bytes: ANY_SIZE };
    case 'ac-3':
    case 'ec-3':
      return { milliseconds: (AC3_SAMPLES / MIN_AC3_RATE) * 1_000, bytes: AC3_BYTES };
    case 'alac':
      return parseAlacLength(entry);
    default:
      return parsePcmLength(type, entry);
  }
}

function parsePcmLength(type: string, entry: Buffer): SampleLength | undefined {
  const defaultBits = PCM_BITS[type];
  if (defaultBits === undefined || entry.length < 28) return undefined;
  const [channels, bits] = [entry.readUInt16BE(16), defaultBits || entry.readUInt16BE(18)];
  const rate = entry.readUInt32BE(24) / 0x1_00_00;
  if (channels === 0 || bits < 8 || rate < 1) return undefined;
  return { milliseconds: 1_000 / rate, bytes: (channels * Math.min(bits, 64)) / 8, isPcm: true };
}

/**
 * Returns undefined for codecs other than AAC and MPEG audio, and for an unusual description, because decoders may
 * interpret it differently.
 */
function parseMp4aLength(entry: Buffer): SampleLength | 'mpeg' | undefined {
  const content = findDecoderConfig(entry);
  if (content === undefined) return undefined;
  const kind = entry[content] ?? 0;
  if (MPEG_AUDIO.has(kind)) return 'mpeg';
  if (!AAC.has(kind)) return undefined;
  const config =
    entry[content + 13] === 0x05
      ? readAacConfig(new BitReader(entry.subarray(skipSize(entry, content + 14))))
      : { rate: MIN_AAC_RATE, samples: AAC_SAMPLES, channels: 1 };
  return (
    config && {
      milliseconds: (config.samples / config.rate) * 1_000,
      bytes: AAC_BYTES_PER_CHANNEL * config.channels,
    }
  );
}

/**
 * Returns the offset of the decoder descriptor's content (ISO/IEC 14496-1, 7.2.6.5).
 * @returns undefined unless there is exactly one `esds`, and its decoder descriptor comes directly after the flags of
 * the stream descriptor, which must be 0
 */
function findDecoderConfig(entry: Buffer): number | undefined {
  const at = entry.indexOf('esds', 0, 'latin1');
  if (at < 0 || entry.indexOf('esds', at + 1, 'latin1') >= 0 || entry[at + 8] !== 0x03) return undefined;
  const stream = skipSize(entry, at + 9);
  return entry[stream + 2] === 0 && entry[stream + 3] === 0x04 ? skipSize(entry, stream + 4) : undefined;
}

/**
 * Returns undefined if the codec is not AAC. The rate is that of the core decoder: SBR doubles both the samples and the
 * rate, so the duration is the same.
 */
function readAacConfig(bits: BitReader) {
  const type = readObjectType(bits);
  if (!AAC_TYPES.has(type)) return undefined;
  const index = bits.readBits(4);
  const rate = index === 15 ? bits.readBits(24) : (AAC_RATES[index] ?? MIN_AAC_RATE);
  const channels = bits.readBits(4);
  const samples = type === 42 ? USAC_SAMPLES : type === 23 || type === 39 ? AAC_LOW_DELAY_SAMPLES : AAC_SAMPLES;
  return { rate: rate || MIN_AAC_RATE, samples, channels: Math.max(1, channels === 7 ? 8 : channels) };
}

function readObjectType(bits: BitReader): number {
  const type = bits.readBits(5);
  return type === 31 ? 32 + bits.readBits(6) : type;
}

/** Uses the slower of the rates in the `alac` box and in the sample description; a rate of 0 is ignored. */
function parseAlacLength(entry: Buffer): SampleLength | undefined {
  const at = entry.indexOf('alac', 0, 'latin1');
  if (at < 0 || at + 32 > entry.length || entry.length < 28) return undefined;
  const samples = entry.readUInt32BE(at + 8);
  const rates = [entry.readUInt32BE(at + 28), entry.readUInt32BE(24) / 0x1_00_00].filter((rate) => rate > 0);
  if (samples === 0 || rates.length === 0) return undefined;
  return { milliseconds: (samples / Math.min(...rates)) * 1_000, bytes: ANY_SIZE };
}

/** Returns the offset after the size field of a descriptor. The field has up to four bytes. */
function skipSize(bytes: Buffer, start: number): number {
  let at = start;
  while (((bytes[at] ?? 0) & 0x80) !== 0 && at < start + 3) at += 1;
  return at + 1;
}

class BitReader {
  private readonly bytes: Uint8Array;
  private position = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  readBits(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++, this.position++)
      value = value * 2 + (((this.bytes[this.position >> 3] ?? 0) >> (7 - (this.position & 7))) & 1);
    return value;
  }
}
