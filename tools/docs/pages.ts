/** Checks what the documentation refers to: links, paths in code spans, and npm scripts. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(import.meta.dirname, '../..');

/** Returns every page of the documentation, as a path from the root. */
export function listPages(): string[] {
  return globSync(['*.md', 'docs/**/*.md', 'apps/**/*.md', 'libs/**/*.md'], { cwd: ROOT }).toSorted();
}

export function readPage(page: string): string {
  return readFileSync(path.join(ROOT, page), 'utf8');
}

/** Returns the links and paths on a page whose target does not exist. Links to other hosts are not followed. */
export function findDeadReferences(page: string): string[] {
  const text = readPage(page);
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target) && !isReachable(page, target));
  const paths = [...removeCodeBlocks(text).matchAll(/`((?:apps|libs|infra|docs|tools)\/[\w./-]+)`/g)]
    .map(([, file = '']) => file)
    .filter((file) => !existsSync(path.join(ROOT, file)));
  return [...links, ...paths];
}

/** Returns the scripts that a page mentions (`npm run bench`) but package.json does not have. */
export function findMissingScripts(page: string): string[] {
  const { scripts } = JSON.parse(readPage('package.json'));
  return [...readPage(page).matchAll(/npm run (?:-s )?([\w:][\w:-]*)/g)]
    .map(([, name = '']) => name)
    .filter((name) => !(name in scripts));
}

function isReachable(page: string, target: string): boolean {
  const [file = '', anchor] = target.split('#');
  const absolute = file === '' ? path.join(ROOT, page) : path.resolve(ROOT, path.dirname(page), file);
  if (!existsSync(absolute)) return false;
  return anchor === undefined || listAnchors(readFileSync(absolute, 'utf8')).includes(anchor);
}

/** Returns the anchors that GitHub generates for ASCII headings that differ from each other. */
function listAnchors(text: string): string[] {
  return [...removeCodeBlocks(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .trim()
      .replaceAll(' ', '-'),
  );
}

function removeCodeBlocks(text: string): string {
  return text.replaceAll(/^```.*?^```/gms, '');
}
