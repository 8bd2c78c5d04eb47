import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { expect, test } from '@jest/globals';

interface Project {
  readonly type: 'application' | 'library';
  readonly root: string;
  readonly sourceRoot: string;
  readonly entryFile: string;
}

const { projects } = JSON.parse(readFileSync('nest-cli.json', 'utf8')) as { projects: Record<string, Project> };
const rootsOf = (type: Project['type']) =>
  Object.values(projects)
    .filter((project) => project.type === type)
    .map(({ root }) => root)
    .sort();
const foldersOf = async (folder: string) => (await readdir(folder)).map((name) => `${folder}/${name}`).sort();

test('nest-cli.json lists every app and lib with an existing entry file', async () => {
  expect(rootsOf('application')).toEqual(await foldersOf('apps'));
  expect(rootsOf('library')).toEqual(await foldersOf('libs'));
  for (const { type, root, sourceRoot, entryFile } of Object.values(projects)) {
    expect(sourceRoot).toBe(`${root}/src`);
    expect(existsSync(`${type === 'library' ? `${sourceRoot}/` : ''}${entryFile}.ts`)).toBe(true);
  }
});
