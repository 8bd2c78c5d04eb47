// Completes package-lock.json, so that `npm ci` accepts it on every platform and installs only what the platform needs.
// If a registry lacks the packages of other platforms, npm omits their optional entries from the file. If it lacked the
// manifest of a package, the entry has no `libc`, and npm installs the binaries for both C libraries of Linux. Run this
// script after every change of dependencies.
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

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
const MANIFEST_FIELDS = ['name', 'version', 'os', 'cpu', 'libc', 'dist.integrity'];
const CONCURRENT_REQUESTS = 4;

const run = promisify(execFile);

/** Adds the optional entries that npm has omitted, for the platforms that their names state. @returns how many */
function addMissingEntries(packages) {
  let added = 0;
  for (const [parentPath, entry] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const packagePath = `node_modules/${name}`;
      if (packages[packagePath] || packages[`${parentPath}/${packagePath}`]) continue;
      const nameParts = name.split(/[/-]/);
      const os = SYSTEMS.filter((system) => nameParts.includes(system));
      const cpu = PROCESSORS.filter((processor) =>
        nameParts.some((part) => part === processor || part.startsWith(`${processor}-`)),
      ).slice(0, 1);
      packages[packagePath] = {
        version: version.replace(/^[\^~]/, ''),
        optional: true,
        ...(os.length > 0 && { os }),
        ...(cpu.length > 0 && { cpu }),
      };
      added++;
    }
  }
  return added;
}

/** Whether the entry of a package for one platform may lack what its manifest states. */
function isIncomplete({ optional, integrity, os = [], libc }) {
  return optional && (integrity === undefined || (os.includes('linux') && libc === undefined));
}

/** @returns the requested fields of a manifest, or undefined if the registry lacks the package */
async function fetchManifest(name, version) {
  try {
    const { stdout } = await run('npm', ['view', '--json', `${name}@${version}`, ...MANIFEST_FIELDS]);
    return JSON.parse(stdout);
  } catch (error) {
    if (`${error.stderr}`.includes('E404')) return undefined;
    throw error;
  }
}

/** Adds the fields that only the manifest states. A manifest without `libc` is for every C library. */
async function completeEntry(packages, packagePath) {
  const entry = packages[packagePath];
  const manifest = await fetchManifest(packagePath.split('node_modules/').at(-1), entry.version);
  if (manifest === undefined) return;
  const { os, cpu, libc, 'dist.integrity': integrity } = manifest;
  packages[packagePath] = sortFields({
    ...entry,
    ...(entry.integrity === undefined && { integrity }),
    ...(os && { os }),
    ...(cpu && { cpu }),
    ...(libc && { libc }),
  });
}

/** Sorts as npm does: version and integrity, other texts and lists, and objects at the end. */
function sortFields({ version, integrity, ...fields }) {
  const isObject = (value) => typeof value === 'object' && !Array.isArray(value);
  const sorted = Object.entries(fields).sort(
    ([a, one], [b, other]) => isObject(one) - isObject(other) || (a < b ? -1 : 1),
  );
  return { version, integrity, ...Object.fromEntries(sorted) };
}

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const added = addMissingEntries(lock.packages);
const incomplete = Object.keys(lock.packages).filter((packagePath) => isIncomplete(lock.packages[packagePath]));
const remaining = incomplete.values();
const completeRemaining = async () => {
  for (const packagePath of remaining) await completeEntry(lock.packages, packagePath);
};
await Promise.all(Array.from({ length: CONCURRENT_REQUESTS }, completeRemaining));
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(`${added} optional entries added, ${incomplete.length} compared with their manifests\n`);
