/** The duration of a recording is measured by what decoders play, not by what its metadata specifies. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { AUDIO_FORMATS, createAudioFile, sampleSize } from '#testing';
import { WorkerAudioDurationCounter } from './audio-duration-counter.ts';

/** Tolerance: decoders also play the rest of the last frame. */
const FRAME_MS = 100;

let directory: string;
const lengths = new WorkerAudioDurationCounter();

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-sound-'));
});

afterAll(async () => {
  await lengths.close();
  await rm(directory, { recursive: true });
});

async function counted(bytes: Buffer) {
  const file = path.join(directory, String(Math.random()));
  await writeFile(file, bytes);
  return lengths.measure(file);
}

function expectAbout(milliseconds: number | undefined, seconds: number): void {
  expect(milliseconds).toBeGreaterThanOrEqual(seconds * 1_000 - FRAME_MS);
  expect(milliseconds).toBeLessThanOrEqual(seconds * 1_000 + FRAME_MS);
}

describe.each(AUDIO_FORMATS)('a recording as %s', (format) => {
  test('has its true duration within 100 ms', async () => {
    expectAbout((await counted(createAudioFile(format, { seconds: 12 })))?.milliseconds, 12);
  });

  test('has its true duration within 100 ms if its metadata specifies a tenth of it or ten times as much', async () => {
    for (const claims of [0.1, 10])
      expectAbout((await counted(createAudioFile(format, { seconds: 12, claims })))?.milliseconds, 12);
  });

  test('has at least 0.55 of its duration, or is not a recording, if 0.6 of its bytes remain', async () => {
    const whole = createAudioFile(format, { seconds: 12 });
    const recording = await counted(whole.subarray(0, Math.floor(whole.length * 0.6)));
    // The tables of a truncated MP4 file are missing or list missing samples, so the result is undefined or too long.
    if (recording) expect(recording.milliseconds).toBeGreaterThanOrEqual(12_000 * 0.55);
  });
});

describe('frames of MPEG audio', () => {
  const mp3 = createAudioFile('mp3', { seconds: 12 });
  /** Bytes of a frame at 44.1 kHz and 128 kbit/s. */
  const FRAME = 417;
  const all = Array.from({ length: Math.floor(mp3.length / FRAME) }, (_, i) =>
    mp3.subarray(i * FRAME, (i + 1) * FRAME),
  );
  /** Decoders require several consecutive frames before they search for more. */
  const [leading, frames] = [all.slice(0, 8), all.slice(8)];

  test('are counted once if they are consecutive, even with frame headers inside them', async () => {
    /** The header of a shorter frame of the same stream, at 32 kbit/s. */
    const [head, shorter] = [Buffer.from('fffb10c0', 'hex'), 104];
    const filled = all.map((frame) => {
      const copy = Buffer.from(frame);
      for (let at = head.length; at + head.length <= FRAME; at += shorter) head.copy(copy, at);
      return copy;
    });
    expectAbout((await counted(Buffer.concat(filled)))?.milliseconds, 12);
  });

  test.each<[string, () => Buffer]>([
    ['with a byte of garbage between them', () => Buffer.concat(frames.flatMap((frame) => [frame, Buffer.from([7])]))],
    [
      'after the header of a frame that is longer than two of them',
      () => Buffer.concat([Buffer.from('fffbe4c0', 'hex'), ...frames]),
    ],
    [
      'inside apparent longer frames',
      () => Buffer.concat(frames.flatMap((frame) => [Buffer.from('fffbe4c0', 'hex'), frame])),
    ],
  ])('are all counted %s', async (_, file) => {
    const bytes = Buffer.concat([...leading, file()]);
    const { milliseconds = 0 } = (await counted(bytes)) ?? {};
    expect(milliseconds).toBeGreaterThanOrEqual(Math.floor(frames.length * 26.1));
  });

  test.each<[string, Buffer]>([
    ['Ogg', createAudioFile('ogg', { seconds: 12 })],
    ['MP4', createAudioFile('m4a', { seconds: 12 })],
    ['WAV', createAudioFile('wav', { seconds: 12 })],
    ['WebM', createAudioFile('webm', { seconds: 12 })],
    ['AAC', Buffer.alloc(20_000, 'fff1508002fffc21', 'hex')],
    ['one frame and AAC', Buffer.concat([mp3.subarray(0, FRAME), Buffer.alloc(20_000, 'fff1508002fffc21', 'hex')])],
  ])('are not detected if an ID3 tag is followed by %s', async (_, other) => {
    const tags = ['49443304000000000003414141', '49443303000000000000', '49443304001000000000334449040000000000000000'];
    for (const tag of tags) expect(await counted(Buffer.concat([Buffer.from(tag, 'hex'), other]))).toBeUndefined();
  });

  test('are not a recording if each of them is followed by 20,000 bytes of invalid data', async () => {
    expect(await counted(Buffer.concat(all.flatMap((frame) => [frame, Buffer.alloc(20_000, 1)])))).toBeUndefined();
  });

  test('are counted together with data that may be audio in another codec', async () => {
    const { milliseconds } = (await counted(Buffer.concat([mp3, Buffer.alloc(300_000, 1), mp3]))) ?? {};
    expect(milliseconds).toBeGreaterThan(24_000 + 280_000);
  });

  test('are found after two large tags and zeros', async () => {
    const tag = Buffer.concat([Buffer.from('49443303000000010000', 'hex'), Buffer.alloc(16_384, 0xff)]);
    const { milliseconds } = (await counted(Buffer.concat([tag, tag, Buffer.alloc(999), mp3]))) ?? {};
    expectAbout(milliseconds, 12);
  });

  test('are counted once if their content is noise', async () => {
    const noise = Buffer.alloc(5_000_000);
    for (let i = 0, state = 1; i < noise.length; i++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      noise[i] = state >>> 16;
    }
    const silence = Buffer.concat(
      all.flatMap((frame) => [Buffer.concat([frame.subarray(0, 4), noise.subarray(0, 413)])]),
    );
    expectAbout((await counted(silence))?.milliseconds, 12);
  });
});

describe('a WAV file', () => {
  const wave = createAudioFile('wav', { seconds: 12 });

  test('has the duration of its slowest format', async () => {
    const slow = Buffer.from(wave.subarray(12, 36));
    slow.writeUInt32LE(slow.readUInt32LE(12) / 4, 12);
    const { milliseconds = 0 } = (await counted(Buffer.concat([wave.subarray(0, 36), slow, wave.subarray(36)]))) ?? {};
    expectAbout(milliseconds, 48);
  });

  test('is not a recording if its codec is not supported', async () => {
    const unknown = Buffer.from(wave);
    unknown.writeUInt16LE(0xf1ac, 20);
    expect(await counted(unknown)).toBeUndefined();
  });

  test.each([
    ['MP3', 0x55, 12],
    ['GSM', 0x31, 12 * 2 * 8_000 * (320 / 65 / 8_000)],
    ['IMA ADPCM', 0x11, 12 * 4],
    ['A-law', 6, 24],
  ])('has the duration that its data has in the codec %s', async (_, tag, seconds) => {
    const other = Buffer.from(wave);
    other.writeUInt16LE(tag, 20);
    const file = tag === 0x55 ? Buffer.concat([other.subarray(0, 44), createAudioFile('mp3', { seconds })]) : other;
    expectAbout((await counted(file))?.milliseconds, seconds);
  });

  test('has the duration that its bits per sample imply if its block size and byte rate are too large', async () => {
    const lying = Buffer.from(wave);
    lying.writeUInt16LE(400, 32);
    lying.writeUInt32LE(8_000_000, 28);
    expectAbout((await counted(lying))?.milliseconds, 12);
  });
});

describe('an MP4 file', () => {
  const box = (type: string, ...content: readonly Buffer[]) => {
    const size = content.reduce((sum, { length }) => sum + length, 8);
    const head = Buffer.alloc(8);
    head.writeUInt32BE(size);
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, ...content]);
  };

  test('is measured in linear time if all samples are in one chunk', async () => {
    const SECONDS = 15_000; // quadratic work would take longer than a test may
    expectAbout((await counted(createAudioFile('m4a', { seconds: SECONDS })))?.milliseconds, SECONDS);
  });

  test('has the samples of both of its fragments, and an oversized sample counts as several', async () => {
    const file = createAudioFile('m4a', { seconds: 10 });
    const table = file.indexOf('stsz');
    const samples = file.readUInt32BE(table + 12);
    file.writeUInt32BE(0, table + 12);
    file.write('free', table, 'latin1');
    const words = (...values: readonly number[]) =>
      Buffer.concat(values.map((value) => Buffer.from(value.toString(16).padStart(8, '0'), 'hex')));
    const fragment = (flags: number, ...run: readonly number[]) =>
      box('moof', box('traf', box('tfhd', words(0x10, 1, 5)), box('trun', words(flags, ...run))));
    expectAbout((await counted(Buffer.concat([file, fragment(0, samples), fragment(0, samples)])))?.milliseconds, 20);
    const large = await counted(Buffer.concat([file, fragment(0x201, 1, 0, 400_000), Buffer.alloc(400_000)]));
    expect(large?.milliseconds).toBeGreaterThan(20_000);
  });

  test('has packets of the maximum duration if its codec is unknown', async () => {
    const file = createAudioFile('m4a', { seconds: 10 });
    file.write('what', file.indexOf('mp4a', file.indexOf('stsd')), 'latin1');
    expect((await counted(file))?.milliseconds).toBeGreaterThan(400 * 8_000);
  });

  test('has at least the duration of the samples that fit into one oversized sample', async () => {
    const file = createAudioFile('m4a', { seconds: 60 });
    const at = file.indexOf('stsz');
    const bytes = 400 * 1_000;
    file.writeUInt32BE(bytes, at + 8);
    file.writeUInt32BE(1, at + 12);
    const { milliseconds = 0 } = (await counted(Buffer.concat([file, Buffer.alloc(bytes)]))) ?? {};
    expect(milliseconds).toBeGreaterThan(1_000 * 20);
  });

  interface Samples {
    readonly samples: number;
    readonly size: number;
    readonly esds?: string;
    readonly head?: Buffer;
  }

  /** A track with samples of a codec, in its own `moov` box. */
  function track(type: string, { samples, size, esds = '', head = Buffer.alloc(28) }: Samples): Buffer {
    const sizes = Buffer.alloc(12);
    sizes.writeUInt32BE(size, 4);
    sizes.writeUInt32BE(samples, 8);
    const entry = Buffer.concat([head, esds ? box('esds', Buffer.from(`00000000${esds}`, 'hex')) : Buffer.alloc(0)]);
    const tables = box('stbl', box('stsd', Buffer.alloc(8), box(type, entry)), box('stsz', sizes));
    const handler = Buffer.from(`${'\0'.repeat(8)}soun`, 'latin1');
    return box('moov', box('trak', box('mdia', box('hdlr', handler), box('minf', tables))));
  }

  const file = (...tracks: readonly Buffer[]) =>
    Buffer.concat([Buffer.from('00000010667479704d34412000000000', 'hex'), ...tracks, Buffer.alloc(8)]);

  const MP3 = '0315000100040d6b1500000000000000000000000000';
  /** AAC-LC at 8 kHz. */
  const AAC = '031900010004114015000000000000000000000000050215880000';

  test('has at least the duration of its longest track, even if another one is MP3', async () => {
    const bytes = file(
      track('mp4a', { samples: 1_000, size: 100, esds: AAC }),
      track('mp4a', { samples: 1, size: 417, esds: MP3 }),
    );
    const { milliseconds = 0 } = (await counted(bytes)) ?? {};
    expect(milliseconds).toBeGreaterThanOrEqual(128_000);
  });

  test.each([80_000, 1])(
    'has as many uncompressed samples as its size allows if its tables specify %p',
    async (samples) => {
      const head = Buffer.alloc(28);
      head.writeUInt16BE(1, 16);
      head.writeUInt16BE(16, 18);
      head.writeUInt32BE(8_000 * 0x1_00_00, 24);
      const bytes = file(track('sowt', { samples, size: 160_000 / samples, head }), box('mdat', Buffer.alloc(160_000)));
      expectAbout((await counted(bytes))?.milliseconds, 10);
    },
  );

  test('has at least the duration of all AC-3 frames in one sample', async () => {
    const { milliseconds = 0 } = (await counted(file(track('ac-3', { samples: 1, size: 128 * 1_000 })))) ?? {};
    expect(milliseconds).toBeGreaterThanOrEqual(32_000);
  });

  test('has at least the longer duration if its sample description can be read in two ways', async () => {
    // The stream number is 0x0400: a reader that searches for the next 4 finds 96 kHz where decoders find 8 kHz.
    const two = `03290400401140150${'0'.repeat(17)}0502100800000411401500${'0'.repeat(20)}05021588`;
    const bytes = file(track('mp4a', { samples: 1_000, size: 200, esds: two }));
    const { milliseconds = 0 } = (await counted(bytes)) ?? {};
    expect(milliseconds).toBeGreaterThanOrEqual(128_000);
  });
});

describe('a WebM file with one large block', () => {
  /** An element whose size is written in four bytes. */
  const element = (id: string, ...content: readonly Buffer[]) => {
    const body = Buffer.concat(content);
    const size = Buffer.alloc(4);
    size.writeUInt32BE(0x1000_0000 + body.length);
    return Buffer.concat([Buffer.from(id, 'hex'), size, body]);
  };
  const hex = (bytes: string) => Buffer.from(bytes, 'hex');

  function file(codec: string, bytes: number, ...audio: readonly Buffer[]): Buffer {
    const track = element('ae', element('d7', hex('01')), element('86', Buffer.from(codec)), element('e1', ...audio));
    const block = element('a3', hex('81000080'), Buffer.alloc(bytes));
    const segment = element('18538067', element('1654ae6b', track), element('1f43b675', block));
    return Buffer.concat([element('1a45dfa3', element('4282', Buffer.from('webm'))), segment]);
  }

  const frequency = (hertz: number) => {
    const value = Buffer.alloc(4);
    value.writeFloatBE(hertz);
    return element('b5', value);
  };
  const bits = element('6264', hex('10'));

  test.each<[string, Buffer]>([
    ['at its rate', file('A_PCM/INT/LIT', 320_000, frequency(16_000), bits)],
    ['with two channels', file('A_PCM/INT/LIT', 640_000, frequency(16_000), element('9f', hex('02')), bits)],
    ['at the default rate of 8 kHz', file('A_PCM/INT/LIT', 160_000, bits)],
  ])('has the duration of its PCM samples %s', async (_, bytes) => {
    expectAbout((await counted(bytes))?.milliseconds, 10);
  });

  test.each<[string, Buffer]>([
    ['PCM at an infinite rate', file('A_PCM/INT/LIT', 75_000, frequency(Number.POSITIVE_INFINITY), bits)],
    ['PCM without a sample size', file('A_PCM/INT/LIT', 75_000, frequency(768_000))],
    ['compressed PCM', file('A_PCM/INT/LIT', 75_000, frequency(768_000), bits, element('6d80'))],
    ['an unknown codec', file('A_OTHER', 75_000)],
    ['Vorbis without settings', file('A_VORBIS', 75_000)],
  ])('has at least the duration of its bytes at 6 kbit/s if it contains %s', async (_, bytes) => {
    const { milliseconds = 0 } = (await counted(bytes)) ?? {};
    expect(milliseconds).toBeGreaterThanOrEqual(100_000);
  });
});

test.each([
  ['an empty file', Buffer.alloc(0)],
  ['a byte', Buffer.from([1])],
  ['zeros', Buffer.alloc(10_000)],
  ['text', Buffer.from('These are words and no sound. '.repeat(100))],
  ['the header of a WAV file', createAudioFile('wav', { seconds: 1 }).subarray(0, 30)],
  ['the header of a WebM file', createAudioFile('webm', { seconds: 1 }).subarray(0, 60)],
  ['the header of an MP4 file', createAudioFile('m4a', { seconds: 1 }).subarray(0, 40)],
  ['Ogg, which is not supported', createAudioFile('ogg', { seconds: 1 })],
])('%s is not a recording', async (_, bytes) => {
  expect(await counted(bytes)).toBeUndefined();
});

test('a queue of 100 recordings rejects another one with a retry delay, and accepts one when it is empty', async () => {
  const file = path.join(directory, 'waiting');
  await writeFile(file, createAudioFile('mp3', { seconds: 1 }));
  const answers = await Promise.allSettled(Array.from({ length: 101 }, () => lengths.measure(file)));
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(100);
  expect(answers.at(-1)).toMatchObject({ reason: { code: 'not_served', retryAfterSeconds: 5 } });
  expect(await lengths.measure(file)).toBeDefined();
});

test('corrupt files have a positive integer as duration or none, and a valid file after them is measured', async () => {
  const whole = new Map(AUDIO_FORMATS.map((format) => [format, createAudioFile(format, { seconds: 2 })]));
  const spoilt = fc.array(fc.tuple(fc.nat(900), fc.nat(255)), { minLength: 1, maxLength: 12 });
  const cut = fc.double({ min: 0, max: 1, noNaN: true });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...AUDIO_FORMATS), spoilt, cut, async (format, changes, share) => {
      const bytes = Buffer.from(whole.get(format) as Buffer);
      for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
      const { milliseconds = 1 } = (await counted(bytes.subarray(0, Math.ceil(bytes.length * share)))) ?? {};
      expect(Number.isSafeInteger(milliseconds) && milliseconds > 0).toBe(true);
    }),
    { numRuns: sampleSize(300, 100) },
  );
  expectAbout((await counted(whole.get('mp4') as Buffer))?.milliseconds, 2);
});
