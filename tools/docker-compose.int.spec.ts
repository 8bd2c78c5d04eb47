/** Checks docker-compose.yml and the files that it needs. Docker itself is not run. */
import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { parseEventStoreDbAddress } from '#eventstore';
import { SETTINGS } from '#foundation';

interface Service {
  readonly image: string;
  readonly env_file?: unknown;
  readonly environment: Readonly<Record<string, string>>;
  readonly volumes: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly depends_on: Readonly<Record<string, { readonly condition: string }>>;
}

const text = readFileSync('docker-compose.yml', 'utf8');
const { services } = parse(text, { merge: true }) as { services: Record<string, Service> };
const serviceOf = (name: string): Service => services[name] as Service;
const mountedIn = ({ volumes }: Service) => volumes.map((volume) => volume.split(':') as [string, string, string?]);
/** Replaces each variable of .env with a valid value. */
const filledIn = (value: string) => value.replaceAll(/\$\{\w+:[^}]*\}/g, '1f');

/** The environment variables of the server: options of EventStoreDB 23.10 and 24.10 (`ClusterVNodeOptions.cs`). */
const OPTIONS = [
  'EVENTSTORE_CERTIFICATE_FILE',
  'EVENTSTORE_CERTIFICATE_PRIVATE_KEY_FILE',
  'EVENTSTORE_CLUSTER_SIZE',
  'EVENTSTORE_DEFAULT_ADMIN_PASSWORD',
  'EVENTSTORE_DEFAULT_OPS_PASSWORD',
  'EVENTSTORE_NODE_HOST_ADVERTISE_AS',
  'EVENTSTORE_RUN_PROJECTIONS',
  'EVENTSTORE_TELEMETRY_OPTOUT',
  'EVENTSTORE_TRUSTED_ROOT_CERTIFICATES_PATH',
];

describe('the EventStoreDB', () => {
  const server = serviceOf('eventstore');

  test('gets only environment variables that are its options, because the server rejects unknown options', () => {
    expect(server.env_file).toBeUndefined();
    expect(Object.keys(server.environment).sort()).toEqual(OPTIONS);
    const ours = Object.values(SETTINGS).map(({ variable }) => variable);
    expect(OPTIONS.filter((option) => ours.includes(option))).toEqual([]);
  });

  test('stores its data and certificates on volumes', () => {
    const places = mountedIn(server).map(([, place]) => place);
    expect(places).toContain('/var/lib/eventstore');
    const files = Object.entries(server.environment).filter(([option]) => /_FILE$|_PATH$/.test(option));
    expect(files).toHaveLength(3);
    for (const [, file] of files) expect(places.some((place) => file.startsWith(place))).toBe(true);
  });
});

describe.each(['gateway', 'projector', 'sagas'])('%s', (role) => {
  const { environment, depends_on: after, ...rest } = serviceOf(role);

  test('connects to the EventStoreDB with TLS, as a user who was granted rights before the role starts', () => {
    const url = filledIn(environment.EVENTSTORE_URL as string);
    expect(parseEventStoreDbAddress(url)).toMatchObject({
      nodes: [{ host: 'eventstore', port: 2113 }],
      usesTls: true,
      credentials: { username: 'countinghouse' },
    });
    expect(environment.PLAINTEXT_STORES).toBe('postgres');
    expect(url).toMatch(/^esdb:\/\/countinghouse:/);
    const trusted = /&tlsCAFile=(.*)\/ca\.crt$/.exec(url)?.[1];
    expect(mountedIn({ ...rest, environment, depends_on: after })).toContainEqual(['eventstore-ca', trusted, 'ro']);
    expect(after['eventstore-grant']?.condition).toBe('service_completed_successfully');
    expect(serviceOf('eventstore-grant').environment.EVENTSTORE_URL).toBe(environment.EVENTSTORE_URL);
  });

  test('does not get the administrator’s password from .env', () => {
    expect(environment.STORE_ADMIN_PASSWORD).toBe('');
  });
});

test('the command in docs/settings.md writes all variables that .env must have', () => {
  const needed = new Set([...text.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name as string));
  const [command = ''] = /printf .*> \.env/s.exec(readFileSync('docs/settings.md', 'utf8')) ?? [];
  expect([...command.matchAll(/([A-Z_]+)=%s/g)].map(([, name]) => name).sort()).toEqual([...needed].sort());
});

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
(hasOpenssl ? test : test.skip)('the script makes certificates for eventstore once, or again if ca.crt is gone', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'countinghouse-certificates-'));
  try {
    const [ca, node] = [path.join(directory, 'ca'), path.join(directory, 'node')];
    for (const each of [ca, node]) mkdirSync(each);
    const make = () => execFileSync('sh', ['infra/docker/eventstore-certificates.sh', ca, node], { stdio: 'ignore' });
    const certificateIn = (file: string) => new X509Certificate(readFileSync(file));
    make();
    const [root, made] = [certificateIn(path.join(ca, 'ca.crt')), certificateIn(path.join(node, 'node.crt'))];
    expect(made.verify(root.publicKey) && made.checkIssued(root) && root.ca && !made.ca).toBe(true);
    expect([made.checkHost('eventstore'), made.checkHost('localhost')]).toEqual(['eventstore', 'localhost']);
    expect(statSync(path.join(node, 'node.key')).mode & 0o077).toBe(0);
    expect([...readdirSync(ca), ...readdirSync(node).sort()]).toEqual(['ca.crt', 'node.crt', 'node.key']);
    make();
    expect(certificateIn(path.join(node, 'node.crt')).fingerprint256).toBe(made.fingerprint256);
    rmSync(path.join(ca, 'ca.crt'));
    make();
    expect(existsSync(path.join(ca, 'ca.crt'))).toBe(true);
    expect(certificateIn(path.join(node, 'node.crt')).fingerprint256).not.toBe(made.fingerprint256);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
