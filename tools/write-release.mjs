// Records in dist/release.json which version and commit were built. Without a repository, such as in an image, the
// commit is that in the environment variable COMMIT.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

function findCommit() {
  if (process.env.COMMIT) return process.env.COMMIT;
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'unknown'; // not a checkout of Git
  }
}

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
writeFileSync('dist/release.json', `${JSON.stringify({ version, commit: findCommit() })}\n`);
