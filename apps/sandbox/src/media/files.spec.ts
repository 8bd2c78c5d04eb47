import { describe, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { AUDIO_FORMATS, createAudioFile } from '#testing';
import { measureAudio, measureDurationMs } from './duration/recording.ts';
import { createAac, createFlac, createMp3, createOggOpus } from './files/audio.ts';
import { createImage, isImage, toColour } from './files/images.ts';
import { createVideo } from './files/videos.ts';

describe('an image', () => {
  const SIZES = [
    [1_024, 1_024],
    [1_536, 1_024],
    [577, 1_023],
    [1, 1],
  ] as const;
  const each = (['png', 'jpeg', 'webp'] as const).flatMap((format) => SIZES.map(([w, h]) => [format, w, h] as const));

  test.each(each)('as %s of %d × %d can be decoded and has the colour of its seed', async (format, width, height) => {
    const bytes = createImage({ seed: 'A coin', width, height, format });
    const { data, info } = await sharp(bytes)
      .removeAlpha()
      .toColourspace('srgb')
      .raw()
      .toBuffer({ resolveWithObject: true });
    expect(isImage(bytes)).toBe(true);
    expect((await sharp(bytes).metadata()).format).toBe(format);
    expect([info.width, info.height]).toEqual([width, height]);
    for (const at of [0, data.length - 3])
      for (const [i, value] of toColour('A coin').entries())
        expect(Math.abs((data[at + i] ?? 0) - value)).toBeLessThan(format === 'jpeg' ? 4 : 1);
  });

  test('is the same for the same seed and differs between seeds', () => {
    const of = (words: string) => createImage({ seed: words, width: 16, height: 9 });
    expect(of('a').equals(of('a'))).toBe(true);
    expect(of('a').equals(of('b'))).toBe(false);
    expect(isImage(createVideo({ seed: 'a', seconds: 1, width: 16, height: 16 }))).toBe(false);
  });
});

describe('a recording', () => {
  test.each([...AUDIO_FORMATS, 'ogg'] as const)('is measured by its true, not its claimed length: %s', (format) => {
    for (const claims of [1, 0.1]) {
      const sound = measureAudio(createAudioFile(format, { seconds: 20, claims, directive: 'Whatever' }));
      expect(sound?.channels).toBe(1);
      expect(Math.abs((sound?.seconds ?? 0) - 20)).toBeLessThan(0.03);
    }
  });

  test('may have two channels', () => {
    expect(measureAudio(createAudioFile('wav', { seconds: 2, channels: 2 }))).toEqual({ seconds: 2, channels: 2 });
  });

  test('as MP3 or Opus has the requested length; as AAC or FLAC it begins like that format', () => {
    expect(measureDurationMs(createMp3('a', 3))).toBeCloseTo(3_004, -1);
    expect(measureDurationMs(createOggOpus('a', 3))).toBe(3_000);
    expect(createAac(1).readUInt16BE(0)).toBe(0xfff1);
    expect(createFlac('a', 1).toString('latin1', 0, 4)).toBe('fLaC');
  });

  test.each([
    ['a text', Buffer.from('no sound')],
    ['a video without audio', createVideo({ seed: 'a', seconds: 1, width: 16, height: 16 })],
    ['an image', createImage({ seed: 'a', width: 1, height: 1 })],
    ['a WAV file without samples', createAudioFile('wav', { seconds: 0 })],
    ['an empty file', Buffer.alloc(0)],
  ])('is not found in %s', (_, bytes) => {
    expect(measureAudio(bytes)).toBeUndefined();
  });

  test.each([...AUDIO_FORMATS, 'ogg'] as const)('as %s can be truncated without an error', (format) => {
    const whole = createAudioFile(format, { seconds: 1 });
    for (let size = 0; size < whole.length; size += 97)
      expect(() => measureAudio(whole.subarray(0, size))).not.toThrow();
  });
});
