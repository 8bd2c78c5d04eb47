/** Finds and builds the release that this build replaces. */
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { buildCommit } from '../../builds.ts';
import { root } from '../../processes.ts';
import { PROOFS_DIR } from '../clients/install.ts';

const STAMP = 'built';

export interface EarlierBuild {
  readonly name: string;
  /** The directory that contains its `dist`. */
  readonly directory: string;
}

interface ListedRelease {
  readonly version: string;
  readonly commit: string;
}

/**
 * Returns the release before this build, built in `.proofs/` unless it already is.
 * @param selected a directory with a build, or a commit; otherwise the newest release in infra/releases.json of another
 *   version, or, if there is none, of another commit
 * @throws Error if there is no such release, or its commit is not in this repository or cannot be built
 */
export async function prepareReleaseBefore(selected: string | undefined): Promise<EarlierBuild> {
  if (selected !== undefined && (await isDirectory(selected)))
    return { name: selected, directory: path.resolve(selected) };
  const { version = '', commit } = selected === undefined ? await readReleaseBefore() : { commit: selected };
  const directory = path.join(PROOFS_DIR, `build-${commit}`);
  const name = `${version} (commit ${commit.slice(0, 12)})`.trim();
  const stamp = path.join(directory, STAMP);
  if ((await readFile(stamp, 'utf8').catch(() => '')) === commit) return { name, directory }; // not built
  await rm(directory, { recursive: true, force: true });
  await buildCommit(commit, directory);
  await writeFile(stamp, commit);
  return { name, directory };
}

/** @param releases in the order of their versions */
export function selectRelease(releases: readonly ListedRelease[], built: ListedRelease): ListedRelease | undefined {
  return (
    releases.findLast(({ version }) => version !== built.version) ??
    releases.findLast(({ commit }) => commit !== built.commit)
  );
}

async function readReleaseBefore(): Promise<ListedRelease> {
  const releases = (await readJson('infra/releases.json')) as readonly ListedRelease[];
  const release = selectRelease(releases, (await readJson('dist/release.json')) as ListedRelease);
  if (release) return release;
  throw new Error('infra/releases.json lists no release before this build: name a commit or the directory of a build');
}

async function readJson(file: string): Promise<unknown> {
  return JSON.parse(await readFile(path.join(root, file), 'utf8'));
}

async function isDirectory(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined))?.isDirectory() ?? false; // does not exist
}
