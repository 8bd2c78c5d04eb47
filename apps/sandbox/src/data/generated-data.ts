/**
 * Generates people, companies and places that cannot be mistaken for real ones: names from short lists, domains that
 * end in `.example` (RFC 2606), telephone numbers that are reserved for fiction, and a country with a user-assigned
 * code of ISO 3166. The same seed gives the same results.
 */
import { createHash } from 'node:crypto';

const FIRST_NAMES = [
  'Ottoline',
  'Bartleby',
  'Perpetua',
  'Ignatius',
  'Marigold',
  'Thaddeus',
  'Wilhelmina',
  'Barnaby',
  'Clementine',
  'Cosmo',
];
const LAST_NAMES = [
  'Quillfeather',
  'Brasswickle',
  'Thistlemoor',
  'Inkwellow',
  'Coppersnood',
  'Pennyfoam',
  'Tallowmere',
  'Abacusson',
  'Ledgerwick',
  'Marrowbeam',
];
const COMPANIES = [
  'Brass Abacus',
  'Paper Harbour',
  'Velvet Cog',
  'Moonlit Sprockets',
  'Lantern Ledger',
  'Quiet Teapot',
  'Nine Inkwells',
  'Upside Anchor',
];
const TOWNS = ['Port Vellum', 'Nether Abacus', 'Upper Tallow', 'Inkhaven', 'Ledger Falls', 'Quillbury'];
const TITLES = [
  'Head of Abaci',
  'Chief Inkwell Officer',
  'Keeper of the Ledger',
  'Director of Sprockets',
  'Senior Quill Engineer',
];
const INDUSTRIES = ['Abacus Making', 'Ink and Vellum', 'Clockwork', 'Lighthouse Keeping'];
const STREETS = ['Abacus Row', 'Quill Lane', 'Tallow Street', 'Sprocket Square'];

const COUNTRY = { name: 'Tabularia', code: 'XT', region: 'Vellumshire' } as const;

/** Pseudo-random choices, derived from a text. */
export class Seed {
  private readonly bytes: Buffer;

  constructor(readonly text: string) {
    this.bytes = createHash('sha256').update(text).digest();
  }

  pick<T>(list: readonly T[], at: number): T {
    return list[this.getNumber(at) % list.length] as T;
  }

  /** Returns a number from 0 to 65,535. */
  getNumber(at: number): number {
    return this.bytes.readUInt16BE((at * 2) % 30);
  }

  /** @param digits number of hexadecimal digits, at most 64 */
  formatHex(digits: number): string {
    return this.bytes.toString('hex').slice(0, digits);
  }

  /** Returns 18 or 19 digits, like the ids of social networks. */
  formatDigits(): string {
    return String(this.bytes.readBigUInt64BE(8) % 9_000_000_000_000_000_000n).padStart(18, '1');
  }

  /** Returns a UUID in the format of version 4. */
  formatUuid(): string {
    const hex = this.formatHex(32);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  }

  branch(suffix: string | number): Seed {
    return new Seed(`${this.text}/${suffix}`);
  }
}

export interface Company {
  readonly id: string;
  readonly name: string;
  readonly domain: string;
  readonly slug: string;
  readonly industry: string;
  readonly employees: number;
  readonly founded: number;
  readonly phone: string;
  readonly place: GeneratedPlace;
  readonly profile: string;
}

export function generateCompany(seed: Seed): Company {
  const name = seed.pick(COMPANIES, 0);
  const slug = toSlug(name);
  return {
    id: seed.formatHex(24),
    name,
    slug,
    domain: `${slug}.example`,
    industry: seed.pick(INDUSTRIES, 1),
    employees: 3 + (seed.getNumber(2) % 900),
    founded: 1801 + (seed.getNumber(3) % 200),
    phone: toPhoneNumber(seed.getNumber(4)),
    place: generatePlace(seed),
    profile: `https://network.example/company/${slug}`,
  };
}

export interface Person {
  readonly id: string;
  readonly first: string;
  readonly last: string;
  readonly name: string;
  readonly handle: string;
  readonly title: string;
  readonly company: Company;
  readonly email: string;
  readonly phone: string;
  readonly profile: string;
  readonly age: number;
  readonly place: GeneratedPlace;
}

export function generatePerson(seed: Seed): Person {
  const first = seed.pick(FIRST_NAMES, 5);
  const last = seed.pick(LAST_NAMES, 6);
  const handle = toSlug(`${first} ${last}`);
  const company = generateCompany(seed);
  return {
    id: seed.formatUuid(),
    first,
    last,
    name: `${first} ${last}`,
    handle,
    title: seed.pick(TITLES, 7),
    company,
    email: `${handle.replace('-', '.')}@${company.domain}`,
    phone: toPhoneNumber(seed.getNumber(8)),
    profile: `https://network.example/in/${handle}`,
    age: 20 + (seed.getNumber(9) % 60),
    place: generatePlace(seed.branch('home')),
  };
}

export interface GeneratedPlace {
  readonly street: string;
  readonly town: string;
  readonly region: string;
  readonly country: string;
  readonly countryCode: string;
  readonly postcode: string;
  readonly address: string;
  readonly latitude: number;
  readonly longitude: number;
}

/** Returns a place in the ocean around latitude 0 and longitude 0. */
export function generatePlace(seed: Seed): GeneratedPlace {
  const street = `${1 + (seed.getNumber(10) % 99)} ${seed.pick(STREETS, 11)}`;
  const town = seed.pick(TOWNS, 12);
  const postcode = `000${10 + (seed.getNumber(13) % 90)}`;
  const { name: country, code: countryCode, region } = COUNTRY;
  return {
    street,
    town,
    region,
    country,
    countryCode,
    postcode,
    address: `${street}, ${town}, ${region} ${postcode}, ${country}`,
    latitude: (seed.getNumber(14) - 32_768) / 65_536,
    longitude: (seed.getNumber(0) - 32_768) / 65_536,
  };
}

/** Returns one of the 100 numbers in area code 202 of North America that are reserved for fiction. */
function toPhoneNumber(number: number): string {
  return `+120255501${String(number % 100).padStart(2, '0')}`;
}

export function toSlug(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
}

/** Returns a time in the year 2025. */
export function generateTime(seed: Seed): string {
  return new Date(Date.UTC(2025, 0, 1) + (seed.getNumber(1) % 8_760) * 3_600_000).toISOString();
}

const VOCABULARY =
  'the lamp above the abacus was lit and whoever counted there began again at the first bead until the sum was right'.split(
    ' ',
  );

/** Returns this many words, with a start that depends on the seed. */
export function generateProse(seed: Seed, wordCount: number): string {
  const start = seed.getNumber(2) % VOCABULARY.length;
  return Array.from({ length: wordCount }, (_, i) => VOCABULARY[(start + i) % VOCABULARY.length]).join(' ');
}
