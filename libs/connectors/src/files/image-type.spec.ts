import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import sharp from 'sharp';
import { detectImageType, detectSafeFileType } from './image-type.ts';
import { detectMediaType } from './media-type.ts';

const picture = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: '#369' } });

const FORMATS = ['png', 'jpeg', 'webp', 'gif'] as const;

/** A PNG whose header specifies this size. */
async function pngOf(width: number, height: number): Promise<Buffer> {
  const bytes = await picture(1, 1).png().toBuffer();
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}

describe('an image', () => {
  test.each(FORMATS)('is detected by its content: %s', async (format) => {
    const bytes = await picture(64, 48).toFormat(format).toBuffer();
    expect(await detectImageType(bytes)).toBe(`image/${format}`);
    expect(await detectImageType(bytes.subarray(0, 4))).toBeUndefined();
  });

  test('is accepted with up to 100 million pixels, but not if a side is 0 or longer than 32,768 pixels', async () => {
    expect(await detectImageType(await pngOf(10_000, 10_000))).toBe('image/png');
    for (const [width, height] of [
      [10_001, 10_000],
      [40_000, 1],
      [0, 10],
      [2 ** 31, 2 ** 31],
    ] as const)
      expect(await detectImageType(await pngOf(width, height))).toBeUndefined();
  });

  test.each<[string, Uint8Array]>([
    ['SVG', Buffer.from('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>')],
    ['HTML', Buffer.from('<!doctype html><script>1</script>')],
    ['PDF', Buffer.from('%PDF-1.7\n')],
    ['text', Buffer.from('GIF is a format')],
    ['a BMP', Buffer.from('BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0', 'latin1')],
    ['an empty file', new Uint8Array()],
    ['audio', Buffer.from('RIFF\x24\0\0\0WAVEfmt ', 'latin1')],
  ])('is not detected in %s', async (_, bytes) => {
    expect(await detectImageType(bytes)).toBeUndefined();
  });

  test('is detected on disk as it is in memory', async () => {
    const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-pictures-'));
    const typeOf = async (bytes: Uint8Array) => {
      await writeFile(path.join(directory, 'a'), bytes);
      return detectSafeFileType(path.join(directory, 'a'));
    };
    for (const format of FORMATS)
      expect(await typeOf(await picture(600, 400).toFormat(format).toBuffer())).toBe(`image/${format}`);
    expect(await typeOf(await pngOf(10_001, 10_000))).toBeUndefined();
    expect(await typeOf(Buffer.from('RIFF\x24\0\0\0WAVEfmt ', 'latin1'))).toBe('audio/wav');
    expect(await typeOf(Buffer.from('<svg/>'))).toBeUndefined();
    await rm(directory, { recursive: true });
  });

  test('is detected or rejected if it is corrupt', async () => {
    const whole = await Promise.all(FORMATS.map((format) => picture(64, 48).toFormat(format).toBuffer()));
    const spoilt = fc
      .tuple(fc.constantFrom(...whole), fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 30 }), fc.nat(400))
      .map(([bytes, changes, cut]) => {
        const copy = Buffer.from(bytes.subarray(0, bytes.length - cut));
        for (const [at, byte] of changes) if (at < copy.length) copy[at] = byte;
        return copy;
      });
    await fc.assert(
      fc.asyncProperty(spoilt, async (bytes) => {
        expect([...FORMATS.map((format) => `image/${format}`), undefined]).toContain(await detectImageType(bytes));
      }),
      { numRuns: 300, seed: 20_261_122 },
    );
  });
});

test.each<[string, string | undefined]>([
  [`\xff\xfb\x90\x64${'\0'.repeat(400)}`, 'audio/mpeg'],
  [`ID3\x04\0\0\0\0\0\0\xff\xfb\x90\x64${'\0'.repeat(400)}`, 'audio/mpeg'],
  ['RIFF\x24\0\0\0WAVEfmt ', 'audio/wav'],
  ['\0\0\0\x18ftypisom\0\0\0\0isomavc1', 'video/mp4'],
  ['\0\0\0\x18ftypM4A \0\0\0\0M4A mp42', 'audio/mp4'],
  ['fLaC\0\0\0\x22', 'audio/flac'],
  ['PK\x03\x04', undefined],
  ['MZ\x90', undefined],
  ['#!/bin/sh\n', undefined],
])('the media type of a file follows from its first bytes: %j is %s', async (bytes, mediaType) => {
  expect(await detectMediaType(Buffer.from(bytes, 'latin1'))).toBe(mediaType);
});
