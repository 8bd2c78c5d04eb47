/** The licences of the packages of a production install, as package-lock.json states them. */

/** Permissive licences, by their SPDX identifiers. A package with another one needs a decision. */
const PERMISSIVE = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'Unlicense'];
const FOLDER = 'node_modules/';

interface LockEntry {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
  /** Whether it is a link to a folder of the project. */
  readonly link?: boolean;
}

export interface PackageLicence {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression; '' if the package states none. */
  readonly licence: string;
}

/** Lists the packages of a lock that are no development dependencies, also those of other platforms, by name. */
export function listLicences(packages: Readonly<Record<string, LockEntry>>): readonly PackageLicence[] {
  return Object.entries(packages)
    .filter(([path, { dev, link }]) => path.startsWith(FOLDER) && !dev && !link)
    .map(([path, { version = '', license = '' }]) => ({
      name: path.slice(path.lastIndexOf(FOLDER) + FOLDER.length),
      version,
      licence: license,
    }))
    .sort((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));
}

/** Whether every licence in the expression is permissive. */
export function isPermissive({ licence }: PackageLicence): boolean {
  const identifiers = licence.split(/\s+(?:AND|OR)\s+|[()]/).filter((identifier) => identifier !== '');
  return identifiers.length > 0 && identifiers.every((identifier) => PERMISSIVE.includes(identifier));
}
