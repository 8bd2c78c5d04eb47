/**
 * Recordings of silence in each of the formats that are transcribed, also such as say that they are shorter than they
 * are: real decoders open them, and decode their true length.
 */

import {
  MP3_FRAME,
  mp3,
  OPUS_PACKET_SECONDS,
  oggOpus,
  pcm,
  SILENT_OPUS,
  silentTrack,
  waveOf,
} from '../../../../apps/sandbox/src/media/files/audio.ts';
import { box, mp4 } from '../../../../apps/sandbox/src/media/files/mp4.ts';
import { film } from '../../../../apps/sandbox/src/media/files/videos.ts';

export const SOUND_FORMATS = ['mp3', 'mp4', 'mpeg', 'mpga', 'm4a', 'wav', 'webm'] as const;
export type SoundFormat = (typeof SOUND_FORMATS)[number] | 'ogg';

export interface TestRecording {
  readonly seconds: number;
  /** What it says of its length, in every place where it says it, as a part of the truth; a tenth: 0.1. */
  readonly claims?: number;
  /** Words among its bytes that no decoder plays: the sandbox looks for its directive there. Not in OGG. */
  readonly directive?: string;
  /** Of a WAV file. */
  readonly channels?: number;
}

/** A recording; MPEG is a program stream of MPEG-1, MPGA is MPEG audio of layer II, MP4 has a picture as well. */
export function soundFile(
  format: SoundFormat,
  { seconds, claims = 1, directive: note = '', channels = 1 }: TestRecording,
): Buffer {
  const words = Buffer.from(note);
  const lies = { headers: claims, times: claims };
  switch (format) {
    case 'mp3':
      return Buffer.concat([id3(words), tableOfContents(seconds, claims), mp3(note, seconds)]);
    case 'mpga':
      return Buffer.concat([id3(words), layerTwo(seconds, claims)]);
    case 'mpeg':
      return programStream(seconds, claims, words);
    case 'm4a':
      return Buffer.concat([mp4('M4A ', [silentTrack(seconds)], lies), box('free', words)]);
    case 'mp4':
      return Buffer.concat([
        film({ seed: note, seconds, width: 32, height: 32, sound: true, claims: lies }),
        box('free', words),
      ]);
    case 'wav': {
      const data = pcm(note, seconds, { rate: WAVE_RATE, channels });
      words.copy(data, 0, 0, Math.min(words.length, data.length));
      return waveOf(data, { rate: WAVE_RATE, channels }, Math.round((data.length * claims) / 4) * 4);
    }
    case 'webm':
      return webm(seconds, claims, words);
    case 'ogg':
      return oggOpus(note, seconds, claims);
  }
}

/** Not a multiple of anything in a file, so that no rounding hides a mistake. */
const WAVE_RATE = 8_000;

/** A tag with words of its own. */
function id3(words: Buffer): Buffer {
  if (words.length === 0) return words;
  const size = words.length + 10;
  const head = Buffer.from([0x49, 0x44, 0x33, 3, 0, 0, 0, 0, size >> 7, size & 0x7f]);
  const frame = Buffer.from('PRIV\0\0\0\0\0\0', 'latin1');
  frame.writeUInt32BE(words.length, 4);
  return Buffer.concat([head, frame, words]);
}

/** The first frame of an MP3, which says how many there are. */
function tableOfContents(seconds: number, claims: number): Buffer {
  const frames = Math.round((seconds / MP3_FRAME.seconds) * claims);
  const frame = Buffer.alloc(MP3_FRAME.bytes);
  Buffer.from('fffb90c0', 'hex').copy(frame);
  frame.write('Xing\0\0\0\x03', 21, 'latin1');
  frame.writeUInt32BE(frames, 29);
  frame.writeUInt32BE((frames + 1) * MP3_FRAME.bytes, 33);
  return frame;
}

const LAYER_TWO_SECONDS = 1_152 / 48_000;

/** Frames of 32 kbit/s; where it lies, the first one has twelve times as many, which stands for all to who reads one. */
function layerTwo(seconds: number, claims: number): Buffer {
  const frames = Math.max(1, Math.round(seconds / LAYER_TWO_SECONDS));
  const frame = (index: number, kilobits: number) => {
    const bytes = Buffer.alloc(kilobits * 3);
    Buffer.from([0xff, 0xfd, (index << 4) | 4, 0xc0]).copy(bytes);
    return bytes;
  };
  const all = Array.from({ length: frames }, () => frame(1, 32));
  if (claims < 1) all[0] = frame(14, 384);
  return Buffer.concat(all);
}

const CLOCK = 90_000;

/** MPEG-1: a pack for each frame of sound, with the time at which it is heard. */
function programStream(seconds: number, claims: number, words: Buffer): Buffer {
  const frames = layerTwo(seconds, 1);
  const size = 96;
  const parts: Buffer[] = [];
  for (let at = 0; at < frames.length; at += size) {
    const time = Math.round((at / size) * LAYER_TWO_SECONDS * CLOCK * claims);
    parts.push(Buffer.from('000001ba', 'hex'), stamped(0x2, time), Buffer.from('800001', 'hex'));
    parts.push(packet(0xc0, Buffer.concat([stamped(0x2, time), frames.subarray(at, at + size)])));
  }
  if (words.length > 0) parts.push(packet(0xbe, Buffer.concat([Buffer.from([0x0f]), words]))); // padding
  return Buffer.concat([...parts, Buffer.from('000001b9', 'hex')]);
}

function packet(stream: number, content: Buffer): Buffer {
  const head = Buffer.from([0, 0, 1, stream, content.length >> 8, content.length & 0xff]);
  return Buffer.concat([head, content]);
}

/** A time of 33 bits, of which only the lower 30 are used. */
function stamped(mark: number, time: number): Buffer {
  const bits = `${mark.toString(2).padStart(4, '0')}000` + `1${part(time, 15)}1${part(time, 0)}1`;
  return Buffer.from(BigInt(`0b${bits}`).toString(16).padStart(10, '0'), 'hex');
}

function part(time: number, from: number): string {
  return (Math.floor(time / 2 ** from) % 2 ** 15).toString(2).padStart(15, '0');
}

const CLUSTER_PACKETS = 500;

/** Opus in WebM. */
function webm(seconds: number, claims: number, words: Buffer): Buffer {
  const packets = Math.max(1, Math.round(seconds / OPUS_PACKET_SECONDS));
  const milliseconds = (count: number) => Math.round(count * OPUS_PACKET_SECONDS * 1_000 * claims);
  const duration = Buffer.alloc(8);
  duration.writeDoubleBE(milliseconds(packets));
  const head = Buffer.from('OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0', 'latin1');
  const audio = element(0xe1, element(0xb5, doubled(48_000)), element(0x9f, bytesOf(1, 1)));
  const codec = [element(0x86, Buffer.from('A_OPUS')), element(0x63a2, head)];
  const track = element(
    0xae,
    element(0xd7, bytesOf(1, 1)),
    element(0x73c5, bytesOf(1, 1)),
    element(0x83, bytesOf(2, 1)),
    ...codec,
    audio,
  );
  const info = element(
    0x1549a966,
    element(0x2ad7b1, bytesOf(1_000_000, 3)),
    element(0x4489, duration),
    app(0x4d80),
    app(0x5741),
  );
  const clusters: Buffer[] = [];
  for (let at = 0; at < packets; at += CLUSTER_PACKETS) {
    const start = milliseconds(at);
    const blocks = Array.from({ length: Math.min(CLUSTER_PACKETS, packets - at) }, (_, i) =>
      element(0xa3, Buffer.from([0x81]), bytesOf(milliseconds(at + i) - start, 2), Buffer.from([0x80]), SILENT_OPUS),
    );
    clusters.push(element(0x1f43b675, element(0xe7, bytesOf(start, 4)), ...blocks));
  }
  const versions = [
    [0x4286, 1],
    [0x42f7, 1],
    [0x42f2, 4],
    [0x42f3, 8],
    [0x4287, 4],
    [0x4285, 2],
  ] as const;
  const [format, reads, idBytes, sizeBytes, version, readVersion] = versions.map(([id, value]) =>
    element(id, bytesOf(value, 1)),
  );
  const first = [
    format,
    reads,
    idBytes,
    sizeBytes,
    element(0x4282, Buffer.from('webm')),
    version,
    readVersion,
  ] as Buffer[];
  const note = words.length > 0 ? [element(0xec, words)] : [];
  return Buffer.concat([
    element(0x1a45dfa3, ...first),
    element(0x18538067, info, element(0x1654ae6b, track), ...note, ...clusters),
  ]);
}

function app(id: number): Buffer {
  return element(id, Buffer.from('countinghouse'));
}

/** An element of EBML, with a size of eight bytes. */
function element(id: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([
    bytesOf(id, Math.ceil(id.toString(16).length / 2)),
    Buffer.from([1]),
    bytesOf(body.length, 7),
    body,
  ]);
}

function doubled(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes;
}

function bytesOf(value: number, width: number): Buffer {
  return Buffer.from(value.toString(16).padStart(width * 2, '0'), 'hex');
}
