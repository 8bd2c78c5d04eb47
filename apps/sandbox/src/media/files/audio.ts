/**
 * Generates silence in the output formats of speech providers. PCM and WAV begin with a faint digest of the seed.
 * Sources: ISO/IEC 11172-3 (MP3), 14496-3 (AAC), RFC 7845 and 6716 (Opus in Ogg), RFC 9639 (FLAC).
 */
import { createHash } from 'node:crypto';
import { packBits } from './bits.ts';
import { createBox, encodeUint32s, type Track } from './mp4.ts';

export const CHARACTERS_PER_SECOND = 15;

/** Returns how long it takes to say this many characters, from 0.1 to 60 seconds. */
export function estimateSpeechSeconds(characters: number): number {
  return Math.min(Math.max(characters / CHARACTERS_PER_SECOND, 0.1), 60);
}

/** MPEG-1 layer III, 44.1 kHz, 128 kbit/s, one channel, without a checksum. */
const MP3_HEADER = Buffer.from('fffb90c0', 'hex');
export const MP3_FRAME = { bytes: 417, seconds: 1_152 / 44_100 };

/** A digest of the seed is in the unused end of the first frame, which decoders ignore. */
export function createMp3(seed: string, seconds: number): Buffer {
  const frames = Math.max(1, Math.round(seconds / MP3_FRAME.seconds));
  const bytes = Buffer.alloc(frames * MP3_FRAME.bytes);
  for (let i = 0; i < frames; i += 1) MP3_HEADER.copy(bytes, i * MP3_FRAME.bytes);
  createHash('sha256')
    .update(seed)
    .digest()
    .copy(bytes, MP3_FRAME.bytes - 32);
  return bytes;
}

export interface PcmFormat {
  readonly rate: number;
  readonly channels?: number;
}

/** 16-bit samples. The first ones are a digest of the seed, at a low volume. */
export function createPcm(seed: string, seconds: number, { rate, channels = 1 }: PcmFormat): Buffer {
  const bytes = Buffer.alloc(Math.round(seconds * rate) * channels * 2);
  const digest = createHash('sha256').update(seed).digest();
  for (let i = 0; i < digest.length && i * 2 + 1 < bytes.length; i += 1) bytes.writeInt16LE(digest[i] ?? 0, i * 2);
  return bytes;
}

export function createToneWave(seed: string, seconds: number, format: PcmFormat): Buffer {
  return createWave(createPcm(seed, seconds, format), format);
}

/** @param claimed number of bytes according to the header */
export function createWave(data: Buffer, { rate, channels = 1 }: PcmFormat, claimed = data.length): Buffer {
  const head = Buffer.alloc(44);
  head.write('RIFF\0\0\0\0WAVEfmt ', 'latin1');
  head.writeUInt32LE(claimed + 36, 4);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * channels * 2, 28);
  head.writeUInt16LE(channels * 2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(claimed, 40);
  return Buffer.concat([head, data]);
}

const AAC_SAMPLES = 1_024;
const AAC_RATE = 44_100;
const AAC_RATE_INDEX = 4;
/** One channel without spectral data, and the end element. */
const SILENT_AAC = Buffer.from('00000007', 'hex');

export function createAacFrames(seconds: number): readonly Buffer[] {
  const frames = Math.max(1, Math.round((seconds * AAC_RATE) / AAC_SAMPLES));
  return Array.from({ length: frames }, () => SILENT_AAC);
}

/** Returns a stream of frames with headers (ADTS). */
export function createAac(seconds: number): Buffer {
  const length = SILENT_AAC.length + 7;
  const bits = `111111111111000101${AAC_RATE_INDEX.toString(2).padStart(4, '0')}0001${'0000'}${length
    .toString(2)
    .padStart(13, '0')}${'1'.repeat(11)}00`;
  return Buffer.concat(createAacFrames(seconds).flatMap((frame) => [packBits(bits), frame]));
}

/** Returns AAC as a track of an MP4 file. */
export function createSilentTrack(seconds: number): Track {
  const config = packBits(`00010${AAC_RATE_INDEX.toString(2).padStart(4, '0')}0001000`);
  const decoder = Buffer.concat([
    Buffer.from([0x40, 0x15, 0, 0, 0]),
    encodeUint32s(128_000, 128_000),
    createDescriptor(5, config),
  ]);
  const esds = createDescriptor(
    3,
    Buffer.from([0, 1, 0]),
    createDescriptor(4, decoder),
    createDescriptor(6, Buffer.from([2])),
  );
  const sampleEntry = Buffer.concat([encodeUint32s(0, 1, 0, 0, 0x10010, 0), encodeUint32s(AAC_RATE * 0x10000)]);
  return {
    kind: 'audio',
    timescale: AAC_RATE,
    step: AAC_SAMPLES,
    samples: createAacFrames(seconds),
    entry: createBox('mp4a', sampleEntry, createBox('esds', encodeUint32s(0), esds)),
  };
}

function createDescriptor(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag, body.length]), body]);
}

/** 20 ms of silence at full bandwidth, in one channel. */
export const SILENT_OPUS = Buffer.from('f8fffe', 'hex');
export const OPUS_PACKET_SECONDS = 0.02;
const OPUS_RATE = 48_000;
const PACKETS_PER_PAGE = 50;

/** @param times factor on the times of the pages */
export function createOggOpus(seed: string, seconds: number, times = 1): Buffer {
  const packets = Math.max(1, Math.round(seconds / OPUS_PACKET_SECONDS));
  const head = Buffer.alloc(19);
  head.write('OpusHead\x01\x01', 'latin1');
  head.writeUInt32LE(OPUS_RATE, 12);
  const name = Buffer.from(createHash('sha256').update(seed).digest('hex').slice(0, 16));
  const tags = Buffer.concat([Buffer.from('OpusTags\x10\0\0\0', 'latin1'), name, Buffer.alloc(4)]);
  const pages = [createPage([head], 0, 0, 2), createPage([tags], 1, 0, 0)];
  for (let at = 0; at < packets; at += PACKETS_PER_PAGE) {
    const count = Math.min(PACKETS_PER_PAGE, packets - at);
    const time = Math.round((at + count) * OPUS_PACKET_SECONDS * OPUS_RATE * times);
    const flags = at + count === packets ? 4 : 0;
    pages.push(
      createPage(
        Array.from({ length: count }, () => SILENT_OPUS),
        pages.length,
        time,
        flags,
      ),
    );
  }
  return Buffer.concat(pages);
}

/** Each packet must be shorter than 255 bytes. */
function createPage(packets: readonly Buffer[], number: number, time: number, flags: number): Buffer {
  const head = Buffer.alloc(27);
  head.write('OggS', 'latin1');
  head[5] = flags;
  head.writeBigUInt64LE(BigInt(time), 6);
  head.writeUInt32LE(1, 14);
  head.writeUInt32LE(number, 18);
  head[26] = packets.length;
  const bytes = Buffer.concat([head, Buffer.from(packets.map(({ length }) => length)), ...packets]);
  bytes.writeUInt32LE(computeCrc(bytes, 32, 0x04c11db7), 22);
  return bytes;
}

const FLAC_RATE = 44_100;
const FLAC_BLOCK = 4_096;

/** Frames with a single constant value, zero. */
export function createFlac(seed: string, seconds: number): Buffer {
  const samples = Math.max(1, Math.round(seconds * FLAC_RATE));
  const blocks = Math.ceil(samples / FLAC_BLOCK);
  const info = Buffer.alloc(34);
  info.writeUInt16BE(FLAC_BLOCK, 0);
  info.writeUInt16BE(FLAC_BLOCK, 2);
  info.writeBigUInt64BE((BigInt(FLAC_RATE) << 44n) | (15n << 36n) | BigInt(blocks * FLAC_BLOCK), 10);
  createHash('md5')
    .update(Buffer.alloc(blocks * FLAC_BLOCK * 2))
    .digest()
    .copy(info, 18);
  const digest = createHash('sha256').update(seed).digest();
  const head = [
    Buffer.from('fLaC\0\0\0\x22', 'latin1'),
    info,
    Buffer.from([0x81, 0, 0, 4 + digest.length]),
    Buffer.from('sndb'),
    digest,
  ];
  return Buffer.concat([...head, ...Array.from({ length: blocks }, (_, i) => createFlacFrame(i))]);
}

function createFlacFrame(number: number): Buffer {
  const digits = Buffer.from(String.fromCodePoint(number)); // FLAC encodes frame numbers like UTF-8
  const head = Buffer.concat([Buffer.from([0xff, 0xf8, 0xc9, 0x08]), digits]);
  const body = Buffer.concat([head, Buffer.from([computeCrc(head, 8, 0x07)]), Buffer.from([0, 0, 0])]);
  const check = computeCrc(body, 16, 0x8005);
  return Buffer.concat([body, Buffer.from([check >> 8, check & 0xff])]);
}

/** Computes a cyclic redundancy check with initial value 0, the highest bit first. */
function computeCrc(bytes: Buffer, width: number, polynomial: number): number {
  const top = 2 ** (width - 1);
  const all = 2 ** width;
  let rest = 0;
  for (const byte of bytes) {
    rest = (rest ^ (byte * 2 ** (width - 8))) >>> 0;
    for (let i = 0; i < 8; i += 1) rest = (rest >= top ? ((rest * 2) % all) ^ polynomial : rest * 2) >>> 0;
  }
  return rest;
}
