/**
 * Creates recordings in all formats that are transcribed. They are silent, except that WAV files start with a few faint
 * samples. A recording can claim another length than it has. Real decoders open it and decode its true length.
 */

import {
  createMp3,
  createOggOpus,
  createPcm,
  createSilentTrack,
  createWave,
  MP3_FRAME,
  OPUS_PACKET_SECONDS,
  SILENT_OPUS,
} from '../../../../apps/sandbox/src/media/files/audio.ts';
import { createBox, createMp4 } from '../../../../apps/sandbox/src/media/files/mp4.ts';
import { createVideo } from '../../../../apps/sandbox/src/media/files/videos.ts';

export const AUDIO_FORMATS = ['mp3', 'mp4', 'mpeg', 'mpga', 'm4a', 'wav', 'webm'] as const;
export type AudioFormat = (typeof AUDIO_FORMATS)[number] | 'ogg';

export interface TestRecording {
  readonly seconds: number;
  /**
   * The claimed length as a factor of the true length, such as 0.1, in all places of the file that state a length. An
   * `mpga` file states none: if the factor is below 1, its first frame has a higher bit rate than the others.
   */
  readonly claims?: number;
  /** Text that the sandbox finds in the file. In WAV files it replaces the first samples; OGG files do not have it. */
  readonly directive?: string;
  /** Only for WAV files. */
  readonly channels?: number;
}

/**
 * Creates a recording. `mpeg` is a program stream of MPEG-1, `mpga` MPEG audio layer II, and `mp4` also has a video
 * track.
 */
export function createAudioFile(
  format: AudioFormat,
  { seconds, claims = 1, directive = '', channels = 1 }: TestRecording,
): Buffer {
  const directiveBytes = Buffer.from(directive);
  const lies = { headers: claims, times: claims };
  switch (format) {
    case 'mp3':
      return Buffer.concat([
        createId3Tag(directiveBytes),
        createHeaderFrame(seconds, claims),
        createMp3(directive, seconds),
      ]);
    case 'mpga':
      return Buffer.concat([createId3Tag(directiveBytes), createMpegLayer2(seconds, claims)]);
    case 'mpeg':
      return createProgramStream(seconds, claims, directiveBytes);
    case 'm4a':
      return Buffer.concat([createMp4('M4A ', [createSilentTrack(seconds)], lies), createBox('free', directiveBytes)]);
    case 'mp4':
      return Buffer.concat([
        createVideo({ seed: directive, seconds, width: 32, height: 32, hasAudio: true, claims: lies }),
        createBox('free', directiveBytes),
      ]);
    case 'wav': {
      const data = createPcm(directive, seconds, { rate: WAVE_RATE, channels });
      directiveBytes.copy(data, 0, 0, Math.min(directiveBytes.length, data.length));
      return createWave(data, { rate: WAVE_RATE, channels }, Math.round((data.length * claims) / 4) * 4);
    }
    case 'webm':
      return createWebm(seconds, claims, directiveBytes);
    case 'ogg':
      return createOggOpus(directive, seconds, claims);
  }
}

const WAVE_RATE = 8_000;

/** Creates an ID3 tag that contains the directive; nothing for an empty one. */
function createId3Tag(directive: Buffer): Buffer {
  if (directive.length === 0) return directive;
  const size = directive.length + 10;
  const head = Buffer.from([0x49, 0x44, 0x33, 3, 0, 0, 0, 0, size >> 7, size & 0x7f]);
  const frame = Buffer.from('PRIV\0\0\0\0\0\0', 'latin1');
  frame.writeUInt32BE(directive.length, 4);
  return Buffer.concat([head, frame, directive]);
}

/** Creates the first frame of an MP3, which states the claimed number of frames. */
function createHeaderFrame(seconds: number, claims: number): Buffer {
  const frames = Math.round((seconds / MP3_FRAME.seconds) * claims);
  const frame = Buffer.alloc(MP3_FRAME.bytes);
  Buffer.from('fffb90c0', 'hex').copy(frame);
  frame.write('Xing\0\0\0\x03', 21, 'latin1');
  frame.writeUInt32BE(frames, 29);
  frame.writeUInt32BE((frames + 1) * MP3_FRAME.bytes, 33);
  return frame;
}

const LAYER_TWO_SECONDS = 1_152 / 48_000;

/**
 * Creates frames of 32 kbit/s. If the claimed length is shorter than the true one, the first frame has 384 kbit/s:
 * simple readers infer the bit rate from it.
 */
function createMpegLayer2(seconds: number, claims: number): Buffer {
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

/** Creates a program stream of MPEG-1, with one pack for each audio frame and its presentation time. */
function createProgramStream(seconds: number, claims: number, directive: Buffer): Buffer {
  const frames = createMpegLayer2(seconds, 1);
  const size = 96;
  const parts: Buffer[] = [];
  for (let at = 0; at < frames.length; at += size) {
    const time = Math.round((at / size) * LAYER_TWO_SECONDS * CLOCK * claims);
    parts.push(Buffer.from('000001ba', 'hex'), encodeTimestamp(0x2, time), Buffer.from('800001', 'hex'));
    parts.push(createPacket(0xc0, Buffer.concat([encodeTimestamp(0x2, time), frames.subarray(at, at + size)])));
  }
  if (directive.length > 0) parts.push(createPacket(0xbe, Buffer.concat([Buffer.from([0x0f]), directive]))); // padding
  return Buffer.concat([...parts, Buffer.from('000001b9', 'hex')]);
}

function createPacket(stream: number, content: Buffer): Buffer {
  const head = Buffer.from([0, 0, 1, stream, content.length >> 8, content.length & 0xff]);
  return Buffer.concat([head, content]);
}

/** Encodes a time of 33 bits. Only the lower 30 bits are used. */
function encodeTimestamp(mark: number, time: number): Buffer {
  const bits = `${mark.toString(2).padStart(4, '0')}000` + `1${part(time, 15)}1${part(time, 0)}1`;
  return Buffer.from(BigInt(`0b${bits}`).toString(16).padStart(10, '0'), 'hex');
}

function part(time: number, from: number): string {
  return (Math.floor(time / 2 ** from) % 2 ** 15).toString(2).padStart(15, '0');
}

const CLUSTER_PACKETS = 500;

/** Creates WebM with Opus audio. */
function createWebm(seconds: number, claims: number, directive: Buffer): Buffer {
  const packets = Math.max(1, Math.round(seconds / OPUS_PACKET_SECONDS));
  const milliseconds = (count: number) => Math.round(count * OPUS_PACKET_SECONDS * 1_000 * claims);
  const duration = Buffer.alloc(8);
  duration.writeDoubleBE(milliseconds(packets));
  const head = Buffer.from('OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0', 'latin1');
  const audio = createElement(
    0xe1,
    createElement(0xb5, encodeDouble(48_000)),
    createElement(0x9f, encodeInteger(1, 1)),
  );
  const codec = [createElement(0x86, Buffer.from('A_OPUS')), createElement(0x63a2, head)];
  const track = createElement(
    0xae,
    createElement(0xd7, encodeInteger(1, 1)),
    createElement(0x73c5, encodeInteger(1, 1)),
    createElement(0x83, encodeInteger(2, 1)),
    ...codec,
    audio,
  );
  const info = createElement(
    0x1549a966,
    createElement(0x2ad7b1, encodeInteger(1_000_000, 3)),
    createElement(0x4489, duration),
    app(0x4d80),
    app(0x5741),
  );
  const clusters: Buffer[] = [];
  for (let at = 0; at < packets; at += CLUSTER_PACKETS) {
    const start = milliseconds(at);
    const blocks = Array.from({ length: Math.min(CLUSTER_PACKETS, packets - at) }, (_, i) =>
      createElement(
        0xa3,
        Buffer.from([0x81]),
        encodeInteger(milliseconds(at + i) - start, 2),
        Buffer.from([0x80]),
        SILENT_OPUS,
      ),
    );
    clusters.push(createElement(0x1f43b675, createElement(0xe7, encodeInteger(start, 4)), ...blocks));
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
    createElement(id, encodeInteger(value, 1)),
  );
  const first = [
    format,
    reads,
    idBytes,
    sizeBytes,
    createElement(0x4282, Buffer.from('webm')),
    version,
    readVersion,
  ] as Buffer[];
  const voidElements = directive.length > 0 ? [createElement(0xec, directive)] : [];
  return Buffer.concat([
    createElement(0x1a45dfa3, ...first),
    createElement(0x18538067, info, createElement(0x1654ae6b, track), ...voidElements, ...clusters),
  ]);
}

function app(id: number): Buffer {
  return createElement(id, Buffer.from('countinghouse'));
}

/** Creates an EBML element whose size field has eight bytes. */
function createElement(id: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([
    encodeInteger(id, Math.ceil(id.toString(16).length / 2)),
    Buffer.from([1]),
    encodeInteger(body.length, 7),
    body,
  ]);
}

function encodeDouble(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes;
}

function encodeInteger(value: number, width: number): Buffer {
  return Buffer.from(value.toString(16).padStart(width * 2, '0'), 'hex');
}
