/** Form bodies with files. */
import { createAudioFile } from './media-files.ts';

/** A PNG of one pixel. */
export const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** Files by the names that examples use for them, such as `@image`. */
const FILES: ReadonlyMap<string, () => File> = new Map([
  ['@file', () => new File([new Uint8Array(createAudioFile('mp3', { seconds: 1 }))], 'recording.mp3')],
  ['@image', () => new File([PIXEL], 'pixel.png')],
  ['@mask', () => new File([PIXEL], 'mask.png')],
]);

/** Creates a form with these fields. A value such as `@image` becomes a file. */
export function createForm(fields: Readonly<Record<string, string | File>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    const file = typeof value === 'string' ? FILES.get(value)?.() : value;
    if (file) form.append(name, file);
    else form.append(name, String(value));
  }
  return form;
}
