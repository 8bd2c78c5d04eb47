/** Which release of the program this is. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

export interface Release {
  /** Semantic version, such as `1.0.0`. */
  readonly version: string;
  /** The commit from which the program was built; `unknown` if the build did not record it. */
  readonly commit: string;
  /** Number of migrations of this release, which only grows. */
  readonly schema: number;
}

/** A spec checks this number. */
const SCHEMA = 53;

/** `npm run build` writes `dist/release.json`. The tests run without a build, from the folder with `package.json`. */
const FILES = ['release.json', 'package.json'];

export const RELEASE: Release = { commit: 'unknown', ...readBuild(), schema: SCHEMA };

function readBuild(): Pick<Release, 'version'> & Partial<Pick<Release, 'commit'>> {
  const root = path.resolve(import.meta.dirname, '../../..');
  for (const file of FILES) {
    try {
      const { version, commit } = JSON.parse(readFileSync(path.join(root, file), 'utf8'));
      return commit === undefined ? { version } : { version, commit };
    } catch {} // the other file has it
  }
  return { version: 'unknown' };
}

/** Returns one line, such as `countinghouse 1.0.0 (commit 1a2b3c4d5e6f, schema 70)`. */
export function formatRelease({ version, commit, schema }: Release = RELEASE): string {
  return `countinghouse ${version} (commit ${commit.slice(0, 12)}, schema ${schema})`;
}
