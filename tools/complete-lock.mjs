// Completes package-lock.json, so that `npm ci` accepts it on every platform. If a registry lacks the packages of other
// platforms, npm omits their optional entries from the file. Run this script after every change of dependencies.
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
    const packagePath = `node_modules/${name}`;
    if (lock.packages[packagePath]) continue;
    const nameParts = name.split(/[/-]/);
    const os = SYSTEMS.filter((system) => nameParts.includes(system));
    const cpu = PROCESSORS.filter((processor) =>
      nameParts.some((part) => part === processor || part.startsWith(`${processor}-`)),
    ).slice(0, 1);
    lock.packages[packagePath] = {
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
