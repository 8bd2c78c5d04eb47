// Completes package-lock.json, so that `npm ci` accepts it on every platform: a registry that lacks the packages of
// other platforms leaves their optional entries out when the file is written. Run after each change of dependencies.
import { readFileSync, writeFileSync } from 'node:fs';

const SYSTEMS = [
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'aix',
  'win32',
  'wasi',
];
const PROCESSORS = ['arm64', 'arm', 'x64', 'ia32', 'ppc64', 's390x', 'riscv64', 'loong64', 'mips64el', 'wasm32'];

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
let added = 0;
for (const entry of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const place = `node_modules/${name}`;
    if (lock.packages[place]) continue;
    const words = name.split(/[/-]/);
    const os = SYSTEMS.filter((each) => words.includes(each));
    const cpu = PROCESSORS.filter((each) => words.some((word) => word === each || word.startsWith(`${each}-`))).slice(
      0,
      1,
    );
    lock.packages[place] = {
      version: version.replace(/^[\^~]/, ''),
      optional: true,
      ...(os.length > 0 && { os }),
      ...(cpu.length > 0 && { cpu }),
    };
    added++;
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(`${added} optional entries added\n`);
