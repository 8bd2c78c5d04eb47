import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from '@jest/globals';
import { replaceSection } from './generated.ts';
import { ROOT, readPage } from './pages.ts';

/** Compares a generated page with what it must be. `npm run docs` writes it instead. */
export function expectPage(page: string, content: string): void {
  if (process.env.DOCS === 'write') writeFileSync(path.join(ROOT, page), content);
  else expect(readPage(page)).toBe(content);
}

/** The same for a section of a page. */
export function expectSection(page: string, name: string, content: string): void {
  expectPage(page, replaceSection(readPage(page), name, content));
}
